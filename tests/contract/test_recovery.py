"""What a crash left open, and taking a session over."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from foldlog.v1 import event_pb2, service_pb2
from google.protobuf.timestamp_pb2 import Timestamp

from tests.contract.calls import Calls
from tests.contract.recovering import (
    FINISHED,
    logs_call,
    plan,
    recover,
    risks,
    step_end,
    step_start,
)
from tests.contract.refusal import refused
from tests.contract.said import (
    assistant,
    header,
    replacing,
    result,
    system,
    turn_end,
    turn_start,
    user,
)

TYPES = event_pb2.EventType
ENDS = [TYPES.EVENT_TYPE_STEP_END, TYPES.EVENT_TYPE_TURN_END]
RESULT = TYPES.EVENT_TYPE_TOOL_RESULT
UNKNOWN, NOT_STARTED = "OUTCOME_UNKNOWN", "NOT_STARTED"


@pytest.fixture
def crashed(log: Calls) -> Calls:
    """A session whose worker died after it dispatched the first of two calls."""
    log.append(turn_start(7), user("q"), step_start(2), assistant("", "c1", "c2"))
    log.append(logs_call("c1", name="f", idempotency_key="k1"))
    return log


def test_a_plan_names_what_is_open_and_the_risk_of_each_call(crashed: Calls) -> None:
    told = plan(crashed)
    assert told.interrupted
    assert list(told.open_turn_seqs) == [0]
    assert (told.open_step_seq, told.next_seq, told.writer_epoch) == (2, 5, 0)
    first, second = told.owed_calls
    assert (first.call_id, first.name, first.seq, first.idempotency_key) == ("c1", "f", 3, "k1")
    assert not second.HasField("idempotency_key")
    assert risks(crashed) == [("c1", UNKNOWN), ("c2", NOT_STARTED)]


def test_a_plan_changes_nothing(crashed: Calls) -> None:
    before = crashed.export()
    plan(crashed)
    crashed.fold()
    assert crashed.export() == before
    assert crashed.get().writer_epoch == 0


def test_recovering_closes_what_is_open_in_order(crashed: Calls) -> None:
    answer = recover(crashed)
    assert (answer.writer_epoch, answer.next_seq) == (1, 9)
    assert list(answer.closing_seqs) == [5, 6, 7, 8]
    assert answer.plan.interrupted
    closing = crashed.events(5)
    assert [each.type for each in closing] == [RESULT, RESULT, *ENDS]
    first, second, step, turn = (each.body for each in closing)
    assert [(b.message.tool_call_id, b.message.name) for b in (first, second)] == [
        ("c1", "f"),
        ("c2", "f"),
    ]
    assert json.loads(first.message.metadata_json) == {
        "synthetic": True,
        "risk": "tool_outcome_unknown",
    }
    assert json.loads(second.message.metadata_json)["risk"] == "tool_not_started"
    assert first.message.text != second.message.text
    assert (step.step_end.number, step.step_end.reason) == (2, "interrupted")
    assert (turn.turn_end.number, turn.turn_end.reason) == (7, "interrupted")
    assert json.loads(step.extra_json) == {"synthetic": True}
    assert json.loads(turn.extra_json) == {"synthetic": True, "steps": 1}


def test_what_was_recovered_is_healthy(crashed: Calls) -> None:
    recover(crashed)
    told = plan(crashed)
    assert not told.interrupted
    assert not told.owed_calls
    assert not crashed.get().HasField("open_turn_seq")
    assert crashed.verify().intact
    answer = crashed.check(*crashed.messages())
    assert answer.checked
    assert not answer.HasField("violation")


def test_closing_events_have_the_time_of_the_last_sign_of_life(log: Calls) -> None:
    at = Timestamp(seconds=1_000_000, nanos=7)
    log.append(turn_start(), assistant("", "c"), user("late", time=at))
    recover(log)
    assert {(each.time.seconds, each.time.nanos) for each in log.events(3)} == {(1_000_000, 7)}


def test_the_same_log_is_closed_by_the_same_events(new_log: Callable[..., Calls]) -> None:
    at = Timestamp(seconds=1_000_000)
    closings = []
    for _ in range(2):
        log = new_log()
        log.append(turn_start(), step_start(), assistant("", "a", "b"), user("x", time=at))
        recover(log)
        closings.append([(each.time, each.body) for each in log.events(4)])
    assert closings[0] == closings[1]


def test_a_healthy_session_gets_a_new_epoch_and_nothing_else(log: Calls) -> None:
    log.append(turn_start(), assistant("", "dangling"), turn_end())
    answer = recover(log)
    assert (answer.writer_epoch, answer.next_seq, list(answer.closing_seqs)) == (1, 3, [])
    assert log.get().next_seq == 3
    again = recover(log)
    assert (again.writer_epoch, again.plan.writer_epoch) == (2, 1)


def test_without_being_asked_nothing_is_closed(crashed: Calls) -> None:
    answer = recover(crashed, close_open_turns=False)
    assert (answer.writer_epoch, answer.next_seq, list(answer.closing_seqs)) == (1, 5, [])
    assert answer.plan.interrupted
    assert plan(crashed).interrupted


def test_an_empty_session_is_recovered_too(log: Calls) -> None:
    assert recover(log).writer_epoch == 1
    assert log.get().next_seq == 0


def test_the_old_worker_is_fenced_off(crashed: Calls) -> None:
    epoch = crashed.open_writer().writer_epoch
    answer = recover(crashed)
    with refused("STALE_WRITER", writer_epoch=epoch, current_epoch=answer.writer_epoch):
        crashed.append(result("late", "c1"), writer_epoch=epoch)
    crashed.append(user("on"), writer_epoch=answer.writer_epoch)


def test_a_takeover_lost_to_another_is_refused(crashed: Calls) -> None:
    recover(crashed, expected_epoch=0)
    with refused("STALE_WRITER", writer_epoch=0, current_epoch=1):
        recover(crashed, expected_epoch=0)
    assert crashed.get().next_seq == 9
    assert recover(crashed, expected_epoch=1).writer_epoch == 2


def test_of_two_takeovers_at_once_one_closes(crashed: Calls) -> None:
    def attempt(_: int) -> bool:
        try:
            recover(crashed, expected_epoch=0)
        except grpc.RpcError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(8))) == 1
    assert crashed.get().next_seq == 9


def test_takeovers_at_once_without_expectation_close_once(crashed: Calls) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: recover(crashed), range(8)))
    assert sorted(each.writer_epoch for each in answers) == list(range(1, 9))
    assert sorted(len(each.closing_seqs) for each in answers) == [0] * 7 + [4]
    assert crashed.get().next_seq == 9


def test_a_retry_has_the_first_answer_whatever_came_since(crashed: Calls) -> None:
    crashed.append(header(model="m"))
    first = recover(crashed, request_id="r", owner="w")
    assert first.header.model == "m"
    crashed.append(
        replacing(system("S"), 1, 8), header(model="other"), writer_epoch=first.writer_epoch
    )
    crashed.snapshot()
    recover(crashed)
    assert recover(crashed, request_id="r", owner="w") == first
    with refused("REQUEST_ID_REUSED"):
        recover(crashed, request_id="r", owner="another")


def test_a_session_without_a_header_is_recovered_without(crashed: Calls) -> None:
    assert not recover(crashed).HasField("header")


def test_a_call_that_was_compacted_away_gets_no_result(log: Calls) -> None:
    log.append(turn_start(), user("q"), assistant("", "c1"), logs_call("c1"))
    log.append(replacing(system("S"), 1, 2), assistant("", "c2"))
    assert risks(log) == [("c2", NOT_STARTED)]
    recover(log)
    assert [m.tool_call_id for m in log.messages() if m.tool_call_id] == ["c2"]
    assert not log.check(*log.messages()).HasField("violation")


def test_open_turns_are_closed_from_within(log: Calls) -> None:
    log.append(turn_start(1), step_start(), assistant("", "a"), turn_start(2), assistant("", "b"))
    assert list(plan(log).open_turn_seqs) == [3, 0]
    recover(log)
    kinds = [each.body.WhichOneof("kind") for each in log.events(5)]
    assert kinds == ["message", "message", "turn_end", "step_end", "turn_end"]
    assert [log.events(7)[0].body.turn_end.number, log.events(9)[0].body.turn_end.number] == [2, 1]


def test_a_step_outside_of_turns_is_closed_too(log: Calls) -> None:
    log.append(step_start(), assistant("", "c"))
    told = plan(log)
    assert (told.interrupted, list(told.open_turn_seqs), told.open_step_seq) == (True, [], 0)
    recover(log)
    assert [each.body.WhichOneof("kind") for each in log.events(2)] == ["message", "step_end"]


def test_what_a_rewind_undid_is_not_open(log: Calls) -> None:
    log.append(user("q"), turn_start(), assistant("", "a"), logs_call("a"))
    log.rewind(0)
    assert not plan(log).interrupted
    log.append(turn_start(), assistant("", "b", "a"))
    assert risks(log) == [("b", UNKNOWN), ("a", UNKNOWN)]
    log.rewind(3)
    assert risks(log) == [("a", UNKNOWN)]
    assert [call.seq for call in plan(log).owed_calls] == [2]


def test_a_fork_inside_a_turn_is_recovered_by_itself(crashed: Calls) -> None:
    child = crashed.fork(3)
    assert risks(child) == [("c1", UNKNOWN), ("c2", UNKNOWN)]
    answer = recover(child)
    assert list(answer.closing_seqs) == [4, 5, 6, 7]
    assert not plan(child).interrupted
    assert plan(crashed).interrupted
    assert crashed.get().next_seq == 5
    assert child.verify().intact


def test_a_finished_call_without_a_result_has_an_unknown_outcome(log: Calls) -> None:
    log.append(turn_start(), assistant("", "c"), logs_call("c"), logs_call("c", FINISHED))
    assert risks(log) == [("c", UNKNOWN)]


def test_a_closed_step_means_that_its_calls_did_not_start(log: Calls) -> None:
    log.append(turn_start(), step_start(), assistant("", "a"), step_end())
    log.append(step_start(), assistant("", "b"))
    assert risks(log) == [("a", NOT_STARTED), ("b", UNKNOWN)]


def test_a_plan_survives_a_snapshot(log: Calls) -> None:
    log.append(turn_start(), user("q"), assistant("", "a"), result("r", "a"), assistant("", "b"))
    log.append(replacing(system("S"), 1, 3), logs_call("b"))
    before = plan(log)
    log.snapshot()
    assert plan(log) == before
    recover(log)
    assert log.verify().intact


def test_absent_sessions_are_named(log: Calls) -> None:
    with refused("SESSION_NOT_FOUND"):
        plan(log.other("no-such-session"))
    with refused("SESSION_NOT_FOUND"):
        recover(log.other("no-such-session"))
    log.delete()
    with refused("SESSION_DELETED"):
        recover(log)


def test_the_feed_tells_of_a_recovery(crashed: Calls) -> None:
    request = service_pb2.WatchAllEventsRequest(from_now=True)
    feed = crashed.stub.WatchAllEvents(request, timeout=60)
    assert next(feed).HasField("caught_up")
    recover(crashed, owner="w")
    told = list(_until_turn_end(feed, crashed.session_id))
    assert told[0].fact.writer_opened == event_pb2.WriterOpenedFact(epoch=1, owner="w")
    assert [each.event.seq for each in told[1:]] == [5, 6, 7, 8]
    feed.cancel()


def _until_turn_end(feed: Iterable[Any], session_id: str) -> Iterator[Any]:
    for each in feed:
        if each.session_id == session_id:
            yield each
            if each.event.type == TYPES.EVENT_TYPE_TURN_END:
                return
