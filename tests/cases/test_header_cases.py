"""The cases of headers: when one is written, how two compare, and that the prefix stays put.

Cases D040 to D046, D081, D082 and H001 to H008 are an ancestor's, hdr-01 to hdr-05 are from faults
that users of other systems met. Where the service departs from them the table says why.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from foldlog.v1 import event_pb2

from tests.conftest import DURABLE_BACKENDS
from tests.contract.calls import Calls
from tests.contract.refusal import refused
from tests.contract.requesting import begin, change_of, rebuilt, record_header
from tests.contract.said import assistant, header, result, turn_start, user, user_message
from tests.served import Served

Fields = dict[str, Any]
PM: Fields = {"provider": "p", "model": "m"}
FULL: Fields = {
    **PM,
    "parameters_json": '{"temperature": 0.5, "stop": ["X"]}',
    "reasoning_effort": "high",
    "system_prompt": "S",
    "tools_json": ['{"name": "t", "description": "d", "parameters": {}}'],
}
ALPHA, BETA = '{"name": "alpha"}', '{"name": "beta"}'


def written(log: Calls) -> list[str]:
    """Return why each header of the log was written, with what stands around it."""
    names = []
    for event in log.events():
        if event.type == event_pb2.EVENT_TYPE_REQUEST_HEADER:
            reason = event_pb2.HeaderReason.Name(event.body.request_header.reason)
            names.append(reason.removeprefix("HEADER_REASON_").lower())
        else:
            names.append(event_pb2.EventType.Name(event.type).removeprefix("EVENT_TYPE_").lower())
    return names


def made(fields: Fields) -> event_pb2.RequestHeader:
    """Return a header."""
    return event_pb2.RequestHeader(**fields)


def test_d040_d041_the_latest_snapshot_wins_wholesale(log: Calls) -> None:
    with refused("HEADER_MISSING"):
        log.header_answer()
    log.append(header(**PM, system_prompt="", tools_json=[]))
    assert log.header_answer().header == made(PM)
    log.append(header(**PM, system_prompt="S", tools_json=[ALPHA]))
    log.append(header(provider="p", model="m2"))
    assert log.header_answer().header == made({"provider": "p", "model": "m2"})


def test_d042_d043_unknown_reasons_are_refused_at_append_and_at_load(log: Calls) -> None:
    """There is no event of deltas to refuse: the schema has none."""
    with refused("INVALID_FIELD"):
        log.append(header(**PM, reason=4))
    with refused("INVALID_FIELD"):
        log.restore(event_pb2.Event(seq=0, body=header(**PM, reason=4).body))
    assert log.get().next_seq == 0


@pytest.mark.parametrize(
    ("a", "b", "is_equal"),
    [
        ({"tools_json": []}, {}, True),
        ({"tools_json": [ALPHA, BETA]}, {"tools_json": [BETA, ALPHA]}, False),
        # Other than there, the order of keys does not count, and an empty prompt is none.
        ({"tools_json": ['{"a":1,"b":2}']}, {"tools_json": ['{"b":2,"a":1}']}, True),
        ({"system_prompt": ""}, {}, True),
        ({"parameters_json": '{"stop": []}'}, {}, False),
        ({"parameters_json": '{"a":1,"b":2}'}, {"parameters_json": '{"b":2,"a":1}'}, True),
    ],
)
def test_d044_equality(log: Calls, a: Fields, b: Fields, is_equal: bool) -> None:
    record_header(log, made({**PM, **a}))
    assert record_header(log, made({**PM, **b})).wrote is not is_equal


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"model": "x"}, "model"),
        ({"system_prompt": "T"}, "system_prompt"),
        ({"system_prompt": ""}, "system_prompt"),
        ({"parameters_json": '{"temperature": 0.4, "stop": ["X"]}'}, "parameters_json"),
        ({"parameters_json": '{"temperature": 0.5, "stop": []}'}, "parameters_json"),
        ({"tools_json": []}, "tools_json"),
        # Other than there, provider and reasoning effort are compared too.
        ({"provider": "q"}, "provider"),
        ({"reasoning_effort": "low"}, "reasoning_effort"),
    ],
)
def test_d081_d082_every_divergence_of_the_header_is_caught(
    log: Calls, changed: Fields, field: str
) -> None:
    log.append(user("hi"), header(**FULL))
    assert not log.check(user_message("hi"), header=made(FULL)).HasField("violation")
    told = log.violation(user_message("hi"), header=made({**FULL, **changed}))
    assert list(told.header_fields) == [field]


def test_h001_to_h003_headers_of_one_worker(log: Calls) -> None:
    log.append(turn_start())
    begin(log, user("a"), header=made(PM))
    begin(log, user("b"), header=made(PM))
    begin(log, user("c"), header=made({**PM, "system_prompt": "S"}))
    assert written(log) == [
        *("turn_start", "step_start", "user_message", "initial"),
        *("step_start", "user_message"),
        *("step_start", "user_message", "change"),
    ]


def test_h004_h005_h008_a_worker_that_takes_over_resumes_once(log: Calls) -> None:
    """A route is no event of its own here: what differs is part of the header."""
    begin(log, header=made(PM))
    epoch = log.open_writer().writer_epoch
    for fields in (PM, PM, {**PM, "model": "m2"}):
        begin(log, header=made(fields), writer_epoch=epoch)
    assert written(log) == [
        *("step_start", "initial"),
        *("step_start", "resume", "step_start", "step_start", "change"),
    ]


@pytest.fixture
def durable(serve: Callable[..., Served], backend: str) -> Served:
    """A server to be restarted."""
    return serve(backend)


@pytest.mark.parametrize("backend", DURABLE_BACKENDS)
def test_hdr_01_a_resume_moves_nothing(durable: Served) -> None:
    log = Calls.create(durable.stub)
    sent = made({"model": "m1", "system_prompt": "P", "tools_json": [ALPHA, BETA]})
    log.append(header(model="m1", system_prompt="P", tools_json=[ALPHA, BETA], reason=1))
    log.append(user("u1"), assistant("a2"))
    before = log.messages()
    durable.restart("graceful")
    log.append(header(model="m1", system_prompt="P", tools_json=[ALPHA, BETA], reason=2))
    log.append(user("u4"))
    assert log.surface() == [1, 2, 4]
    assert log.messages()[:2] == before
    assert not log.check(*log.messages(), header=sent).HasField("violation")


@pytest.mark.parametrize("backend", DURABLE_BACKENDS)
def test_hdr_02_tools_in_another_order_differ_and_stay_as_they_are(durable: Served) -> None:
    log = Calls.create(durable.stub)
    log.append(header(model="m1", tools_json=[ALPHA, BETA]), user("u1"))
    same, turned = ({"model": "m1", "tools_json": each} for each in ([ALPHA, BETA], [BETA, ALPHA]))
    assert not log.check(user_message("u1"), header=made(same)).HasField("violation")
    told = log.violation(user_message("u1"), header=made(turned))
    assert list(told.header_fields) == ["tools_json"]
    durable.restart()
    assert list(log.header_answer().header.tools_json) == [ALPHA, BETA]


@pytest.mark.parametrize("backend", DURABLE_BACKENDS)
def test_hdr_04_a_model_lives_in_the_history(durable: Served) -> None:
    log = Calls.create(durable.stub)
    log.append(header(model="m1"), user("u1"), header(model="m2"), user("u3"))
    durable.restart()
    assert log.header_answer().header.model == "m2"
    child = log.fork(at_seq=1)
    assert child.header_answer().header.model == "m1"
    child.append(header(model="m3"))
    assert child.header_answer().header.model == "m3"
    assert log.header_answer().header.model == "m2"
    log.rewind(1)
    assert log.header_answer().header.model == "m1"
    assert child.texts() == ["u1"]


@pytest.mark.parametrize("backend", DURABLE_BACKENDS)
def test_hdr_05_what_only_grows_keeps_its_prefix(durable: Served) -> None:
    log = Calls.create(durable.stub)
    record_header(log, made(PM))
    steps = [begin(log).step]
    for number in range(30):
        log.append(user(f"u{number}"), assistant(None, "c"), result(json.dumps(number), "c"))
        log.append(turn_start(), header(**PM))
        steps.append(begin(log, user("x")).step)
    assert all(step.extends_previous for step in steps[1:])
    newest = rebuilt(log).sha256
    durable.restart()
    assert rebuilt(log).sha256 == newest
    assert change_of(log, steps[-1].step_seq).is_extension
