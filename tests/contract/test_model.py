"""The service behaves like a plain model, under random ops from one client and from several."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter, defaultdict
from typing import Any

import pytest
from foldlog.v1 import event_pb2
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import DURABLE_BACKENDS
from tests.contract.calls import Calls, fresh_id, imported
from tests.contract.digests import prefix_digest
from tests.contract.model import Model, RefusedError
from tests.contract.random_ops import drawn, sent
from tests.contract.refusal import refused
from tests.contract.said import user
from tests.served import ROOT, Served

WORKERS = 3
OPS_PER_WORKER = 120
REWIND = event_pb2.EVENT_TYPE_REWIND
EXAMPLES = settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def outcome(model: Model, op: dict[str, Any]) -> str:
    """Apply an op to the model; return "ok" or the reason of the refusal."""
    try:
        model.apply(op)
    except RefusedError as refusal:
        return refusal.reason
    return "ok"


def assert_equal(log: Calls, model: Model) -> None:
    """Compare the fold, and every event's state."""
    folded = log.fold()
    assert [(e.seq, e.position, e.message.text) for e in folded] == [
        (e.seq, e.position, e.text) for e in model.surface()
    ]
    events = log.events()
    assert [each.seq for each in events] == [each.seq for each in model.entries]
    states = [each.state for each in events if each.type != REWIND]
    assert states == [model.state(e) for e in model.entries if e.rewind_to is None]
    model.learn_dropped({each.seq for each in events if each.dropped})
    assert log.fold_pieces()[-1].digest == prefix_digest([each.message for each in folded])


def assert_equal_at_every_seq(log: Calls, model: Model) -> None:
    """Compare the fold at each seq, or that it cannot be read."""
    for seq in range(-1, model.next_seq):
        if model.is_whole(seq):
            assert log.surface(seq) == [each.seq for each in model.surface(seq)], seq
        else:
            with refused("HISTORY_DROPPED"):
                log.fold(seq)
    session = log.get()
    assert session.next_seq == model.next_seq
    assert model.whole_from() <= session.whole_from_seq <= model.next_seq


Family = list[tuple[Calls, Model]]


@given(seed=st.integers(0, 2**32), length=st.integers(1, 40))
@EXAMPLES
def test_one_client_sees_what_the_model_says(stub: Any, seed: int, length: int) -> None:
    for log, model in grown_family(stub, seed, length):
        assert_equal(log, model)
        assert_equal_at_every_seq(log, model)
        assert log.verify().intact


def grown_family(stub: Any, seed: int, length: int) -> Family:
    """Return a session and its forks after random ops, each compared as it was done."""
    chance = random.Random(seed)
    family = [(Calls.create(stub), Model())]
    for number in range(length):
        log, model = chance.choice(family)
        if chance.random() < 0.1 and model.next_seq:
            _fork(family, log, model, chance.randrange(-1, model.next_seq))
            continue
        op = drawn(chance, model.next_seq, str(number))
        if chance.random() < 0.06:
            op = {"op": "snapshot"}
        expected = model.next_seq
        assert outcome(model, op) == sent(log, op, expected), op
        assert_equal(log, model)
    return family


def _fork(family: Family, log: Calls, model: Model, at_seq: int) -> None:
    if model.is_whole(at_seq):
        family.append((log.fork(at_seq), model.fork(at_seq)))
        return
    with refused("HISTORY_DROPPED"):
        log.fork(at_seq)


def test_a_copy_is_what_the_original_is(stub: Any) -> None:
    for seed in range(2):
        for log, model in grown_family(stub, seed, 60):
            answer = imported(stub, log.export(), fresh_id("copy"))
            copy = log.other(answer.session.session_id)
            assert_equal(copy, model)
            assert_equal_at_every_seq(copy, model)
            assert copy.verify().intact


@pytest.mark.parametrize("backend", DURABLE_BACKENDS, indirect=True)
def test_a_restart_changes_nothing(served: Served) -> None:
    family = [each for seed in range(2) for each in grown_family(served.stub, seed, 60)]
    chains = [log.verify().chain for log, _ in family]
    served.restart()
    for (log, model), chain in zip(family, chains, strict=True):
        assert_equal(log, model)
        assert_equal_at_every_seq(log, model)
        assert log.verify().chain == chain
        log.append(user("goes on"), expected_next_seq=model.next_seq)


def test_several_processes_see_what_the_model_says(served: Served) -> None:
    logs = {each.session_id: each for each in (Calls.create(served.stub) for _ in range(3))}
    told = _told_by_workers(served.address, list(logs))
    outcomes = Counter(each.get("outcome", "read") for each in told)
    assert outcomes["ok"] > OPS_PER_WORKER
    assert outcomes["SEQ_CONFLICT"] > 0
    by_session: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for each in told:
        by_session[each["session"]].append(each)
    for session_id, steps in by_session.items():
        model = _replayed(steps, logs[session_id])
        assert_equal(logs[session_id], model)
        assert logs[session_id].verify().intact


def _told_by_workers(address: str, session_ids: list[str]) -> list[dict[str, Any]]:
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'service'}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "tests.contract.model_worker", address]
    workers = [
        subprocess.Popen(
            [*command, str(seed), str(OPS_PER_WORKER), *session_ids],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
        )
        for seed in range(WORKERS)
    ]
    outputs = [worker.communicate(timeout=120)[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * WORKERS
    return [json.loads(line) for output in outputs for line in output.splitlines()]


def _replayed(steps: list[dict[str, Any]], log: Calls) -> Model:
    """Apply what succeeded in order of seqs, and judge everything else against the state it saw."""
    model = Model()
    judged = [each for each in steps if each.get("outcome") != "SEQ_CONFLICT"]
    for step in sorted(judged, key=lambda each: (each["next_seq"], each.get("outcome") == "ok")):
        assert step["next_seq"] == model.next_seq or "child" in step, step
        if "read" in step:
            assert step["next_seq"] >= step["at_least"]
            assert step["read"] == [[each.seq, each.text] for each in model.surface()], step
        elif "child" in step:
            _assert_child(log.other(step["child"]), model.fork(step["at_seq"]))
        else:
            assert outcome(model, step["op"]) == step["outcome"], step
    return model


def _assert_child(child: Calls, model: Model) -> None:
    assert child.surface() == [each.seq for each in model.surface()]
    assert child.get().next_seq == model.next_seq


@pytest.mark.parametrize("seed", range(3))
def test_the_model_hits_what_it_is_for(seed: int) -> None:
    chance, model = random.Random(seed), Model()
    outcomes: Counter[str] = Counter()
    for number in range(400):
        op = drawn(chance, model.next_seq, str(number))
        outcomes[f"{op['op']} {outcome(model, op)}"] += 1
    for expected in ("positions ok", "entries ok", "rewind ok", "restore ok"):
        assert outcomes[expected] >= 5, outcomes
    for expected in ("positions EMPTY_RANGE", "entries ENTRY_NOT_LIVE", "positions INVALID_FIELD"):
        assert outcomes[expected] >= 5, outcomes
