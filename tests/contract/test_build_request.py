"""BuildRequest: any request again, at any later time."""

from __future__ import annotations

import pytest
from foldlog.v1 import event_pb2

from tests.contract.calls import Calls, fresh_id, imported
from tests.contract.digests import prefix_digest
from tests.contract.refusal import refused
from tests.contract.requesting import HEADER, begin, rebuilt
from tests.contract.said import assistant, bookkeeping, header, replacing, system, user

STEP_START = bookkeeping(step_start=event_pb2.StepStart())


@pytest.mark.parametrize("independent", [False, True], ids=["cached", "independent"])
def test_a_steps_request_comes_back_whatever_happened_since(log: Calls, independent: bool) -> None:
    first = begin(log, user("a"), header=HEADER)
    second = begin(log, assistant("b"), user("c"))
    log.append(replacing(system("S"), 0, 4), header(model="n"))
    third = begin(log, user("d"))
    log.rewind(2)
    child = log.fork()
    for session in (log, child):
        for begun in (first, second, third):
            again = rebuilt(session, step_seq=begun.step.step_seq, independent=independent)
            assert again == begun.request


def test_a_request_now_and_at_a_seq(log: Calls) -> None:
    log.append(header(model="m"), user("a"), user("b"))
    now, then = rebuilt(log), rebuilt(log, at_seq=1)
    assert (now.texts, now.about.built_at_next_seq) == (["a", "b"], 3)
    assert (then.texts, then.about.built_at_next_seq) == (["a"], 2)
    assert not now.about.HasField("step_seq")
    assert now.about.digest == prefix_digest(now.messages)
    assert now.sha256 != then.sha256


def test_a_step_that_was_appended_has_its_whole_batch(log: Calls) -> None:
    log.append(user("before"))
    log.append(STEP_START, user("a"), header(model="m"))
    log.append(user("after"))
    assert rebuilt(log, step_seq=1).texts == ["before", "a"]


def test_a_fork_cut_within_a_step_builds_it_at_the_cut(log: Calls) -> None:
    log.append(header(model="m"), STEP_START, user("a"), user("b"))
    child = log.fork(at_seq=2)
    child.append(user("other"))
    assert rebuilt(child, step_seq=1).texts == ["a"]
    assert [e.request_next_seq for e in child.events() if e.seq == 1] == [3]
    assert rebuilt(log, step_seq=1).texts == ["a", "b"]


def test_header_missing_where_none_was_recorded_yet(log: Calls) -> None:
    log.append(user("a"), header(model="m"))
    with refused("HEADER_MISSING", session_id=log.session_id):
        rebuilt(log, at_seq=0)
    assert rebuilt(log, at_seq=1).texts == ["a"]
    log.rewind(-1)
    with refused("HEADER_MISSING"):
        rebuilt(log)


def test_what_is_no_step_is_refused(log: Calls) -> None:
    log.append(header(model="m"), STEP_START, user("a"))
    for seq in (0, 2, -1):
        with refused("INVALID_FIELD") as told:
            rebuilt(log, step_seq=seq)
        assert list(told.fields or {}) == ["step_seq"]
    for place in ({"step_seq": 3}, {"at_seq": 3}):
        with refused("SEQ_BEYOND_HEAD", seq=3, next_seq=3):
            rebuilt(log, **place)


def test_a_dropped_request_says_so(log: Calls) -> None:
    first = begin(log, user("a"), header=HEADER)
    log.append(replacing(system("S"), 0, 2))
    log.snapshot()
    with refused("HISTORY_DROPPED"):
        rebuilt(log, step_seq=first.step.step_seq)
    with refused("HISTORY_DROPPED"):
        rebuilt(log, step_seq=first.step.step_seq, independent=True)
    assert rebuilt(log).texts == ["S"]


def test_a_long_request_comes_in_pieces(log: Calls) -> None:
    texts = [f"{i} " * 500 for i in range(1_500)]
    for start in range(0, len(texts), 500):
        log.append(*map(user, texts[start : start + 500]))
    begun = begin(log, header=HEADER)
    assert begun.request.texts == texts
    assert rebuilt(log, independent=True).sha256 == begun.request.sha256


def test_steps_survive_an_import(log: Calls) -> None:
    begun = begin(log, user("a"), user("b"), header=HEADER)
    log.append(STEP_START, user("c"))
    copy = log.other(fresh_id())
    imported(log.stub, log.export(), copy.session_id)
    assert rebuilt(copy, step_seq=begun.step.step_seq).sha256 == begun.request.sha256
    assert rebuilt(copy, step_seq=4).sha256 == rebuilt(log, step_seq=4).sha256
    renamed = log.export().replace(log.session_id.encode(), copy.session_id.encode())
    assert copy.export() == renamed
