"""The tool-effect ledger: dispatched calls of which nothing more is known, across sessions."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from foldlog.v1 import event_pb2, service_pb2
from google.protobuf.timestamp_pb2 import Timestamp

from tests.contract.calls import DEADLINE_S, Calls, fresh_id, imported
from tests.contract.recovering import (
    DISPATCHED,
    FAILED,
    FINISHED,
    logs_call,
    recover,
    unresolved,
    unresolved_pages,
)
from tests.contract.refusal import refused
from tests.contract.said import assistant, replacing, result, system, turn_start, user
from tests.persistence.stores import open_write
from tests.served import Served


def dispatched_at(call_id: str, seconds: int) -> event_pb2.NewEvent:
    """Return a dispatch at a time."""
    event = logs_call(call_id)
    event.time.CopyFrom(Timestamp(seconds=seconds))
    return event


def test_a_dispatched_call_is_listed_with_all_that_is_known(log: Calls) -> None:
    log.append(assistant("", "c"))
    event = logs_call("c", name="charge", idempotency_key="key-1")
    event.time.CopyFrom(Timestamp(seconds=1_000, nanos=5))
    log.append(event)
    (page,) = unresolved_pages(log.stub, log.session_id)
    (call,) = page.calls
    assert call == service_pb2.UnresolvedCall(
        session_id=log.session_id,
        seq=1,
        call_id="c",
        name="charge",
        idempotency_key="key-1",
        time=Timestamp(seconds=1_000, nanos=5),
    )


@pytest.mark.parametrize(
    "end",
    [logs_call("c", FINISHED), logs_call("c", FAILED), result("r", "c")],
    ids=["finished", "failed", "a result"],
)
def test_what_ends_a_call_resolves_it(log: Calls, end: event_pb2.NewEvent) -> None:
    log.append(assistant("", "c", "d"), logs_call("c"), logs_call("d"))
    assert unresolved(log) == [(1, "c"), (2, "d")]
    log.append(end)
    assert unresolved(log) == [(2, "d")]


def test_a_call_dispatched_and_ended_in_one_batch_is_never_listed(log: Calls) -> None:
    log.append(assistant("", "c"), logs_call("c"), result("r", "c"))
    assert unresolved(log) == []


def test_an_end_before_the_dispatch_ends_nothing(log: Calls) -> None:
    log.append(logs_call("c", FINISHED), assistant("", "c"), logs_call("c"))
    assert unresolved(log) == [(2, "c")]


def test_each_dispatch_of_an_id_is_listed(log: Calls) -> None:
    log.append(assistant("", "c"), logs_call("c"), logs_call("c"))
    assert unresolved(log) == [(1, "c"), (2, "c")]
    log.append(result("r", "c"))
    assert unresolved(log) == []


def test_a_phase_not_said_is_a_dispatch(log: Calls) -> None:
    log.append(logs_call("c", event_pb2.TOOL_CALL_PHASE_UNSPECIFIED))
    assert unresolved(log) == [(0, "c")]


def test_recovery_resolves_what_it_answers(log: Calls) -> None:
    log.append(turn_start(), assistant("", "c"), logs_call("c"))
    assert unresolved(log) == [(2, "c")]
    recover(log)
    assert unresolved(log) == []


def test_a_compaction_resolves_nothing(log: Calls) -> None:
    log.append(assistant("", "c"), logs_call("c"), replacing(system("S"), 0, 0))
    assert unresolved(log) == [(1, "c")]
    log.append(result("r", "c"), replacing(system("T"), 0, 3))
    log.snapshot()
    assert unresolved(log) == []


def test_a_rewind_undoes_dispatches_and_ends(log: Calls) -> None:
    log.append(user("q"), assistant("", "a", "b"), logs_call("a"), result("r", "a"))
    log.append(logs_call("b"))
    assert unresolved(log) == [(4, "b")]
    log.rewind(2)
    assert unresolved(log) == [(2, "a")]
    log.rewind(0)
    assert unresolved(log) == []
    log.rewind(4)
    assert unresolved(log) == [(4, "b")]


def test_a_rewind_in_the_batch_of_the_feed_counts_where_it_stands(log: Calls) -> None:
    log.append(assistant("", "a"), logs_call("a"))
    log.rewind(0)
    log.append(logs_call("a"), result("r", "a"))
    log.rewind(3)
    assert unresolved(log) == [(3, "a")]


def test_a_deleted_session_lists_nothing(log: Calls) -> None:
    log.append(logs_call("c"))
    assert unresolved(log) == [(0, "c")]
    log.delete()
    assert unresolved(log) == []
    listed = [call for page in unresolved_pages(log.stub, page_size=1_000) for call in page.calls]
    assert log.session_id not in {call.session_id for call in listed}


def test_a_fork_lists_only_what_it_dispatches_itself(log: Calls) -> None:
    log.append(assistant("", "a", "b"), logs_call("a"))
    child = log.fork()
    child.append(logs_call("b"))
    assert unresolved(child) == [(2, "b")]
    child.append(result("r", "a"))
    assert unresolved(log) == [(1, "a")]
    log.delete()
    assert unresolved(child) == [(2, "b")]


def test_pages_come_the_oldest_first_across_sessions(
    new_log: Callable[..., Calls], served: Served
) -> None:
    logs = [new_log() for _ in range(3)]
    for number in range(12):
        logs[number % 3].append(dispatched_at(f"c{number}", -5_000_000 - number))
    ours = {log.session_id for log in logs}
    pages = list(unresolved_pages(served.stub, page_size=5))
    calls = [call for page in pages for call in page.calls if call.session_id in ours]
    assert [call.call_id for call in calls] == [f"c{number}" for number in reversed(range(12))]
    assert max(len(page.calls) for page in pages) == 5


def test_calls_of_one_time_are_each_listed_once(log: Calls) -> None:
    log.append(*(dispatched_at(f"c{n}", 50) for n in range(7)))
    pages = list(unresolved_pages(log.stub, log.session_id, page_size=2))
    assert [call.seq for page in pages for call in page.calls] == list(range(7))
    assert [len(page.calls) for page in pages] == [2, 2, 2, 1]


def test_more_than_a_page_reads_at_once_is_listed_whole(log: Calls) -> None:
    log.append(*(logs_call(f"c{n}") for n in range(230)))
    pages = list(unresolved_pages(log.stub, log.session_id, page_size=200))
    assert [len(page.calls) for page in pages] == [200, 30]
    assert sorted(call.seq for page in pages for call in page.calls) == list(range(230))


def test_pages_are_bounded_by_bytes(log: Calls) -> None:
    for number in range(4):
        log.append(logs_call(f"c{number}", name="x" * 1_500_000))
    pages = list(unresolved_pages(log.stub, log.session_id))
    assert [call.call_id for page in pages for call in page.calls] == ["c0", "c1", "c2", "c3"]
    assert len(pages) > 1


def test_odd_texts_come_back_as_they_were(log: Calls) -> None:
    call_id = "nul \0 and 日本 and " + "x" * 5_000
    log.append(logs_call(call_id, name="\0", idempotency_key="k\0"))
    ((call,),) = [page.calls for page in unresolved_pages(log.stub, log.session_id)]
    assert (call.call_id, call.name, call.idempotency_key) == (call_id, "\0", "k\0")
    log.append(result("r", call_id))
    assert unresolved(log) == []


def test_a_call_without_an_id_cannot_be_resolved_and_is_not_listed(log: Calls) -> None:
    state = event_pb2.ToolCallState(name="f", phase=DISPATCHED)
    log.append(event_pb2.NewEvent(body=event_pb2.EventBody(tool_call=state)))
    assert unresolved(log) == []


def test_an_imported_session_lists_what_its_file_left_unresolved(log: Calls) -> None:
    log.append(assistant("", "a", "b"), logs_call("a"), logs_call("b"), result("r", "a"))
    log.rewind(2)
    copy = log.other(imported(log.stub, log.export(), f"{log.session_id}-copy").session.session_id)
    assert unresolved(copy) == [(1, "a"), (2, "b")]


@pytest.mark.parametrize("backend", ["postgres"])
def test_what_was_imported_is_listed_although_an_earlier_write_is_under_way(
    log: Calls, served: Served
) -> None:
    """The index cannot pass the import before the write has ended, and the listing waits for it."""
    log.append(assistant("", "a"), logs_call("a"))
    data = log.export()
    with ThreadPoolExecutor(1) as pool, open_write(served.database_url, uuid4()) as unfinished:
        copy = log.other(imported(log.stub, data, fresh_id()).session.session_id)
        listing = pool.submit(unresolved, copy)
        with pytest.raises(TimeoutError):
            listing.result(0.5)
        unfinished.rollback()
        assert listing.result(DEADLINE_S) == [(1, "a")]


def test_a_token_of_another_listing_is_refused(log: Calls) -> None:
    log.append(*(logs_call(f"c{n}") for n in range(3)))
    page = next(unresolved_pages(log.stub, log.session_id, page_size=2))
    for request in (
        service_pb2.ListUnresolvedCallsRequest(page_token=page.next_page_token),
        service_pb2.ListUnresolvedCallsRequest(session_id=log.session_id, page_token="nonsense"),
    ):
        with refused("INVALID_FIELD") as told:
            log.stub.ListUnresolvedCalls(request)
        assert told.fields
        assert list(told.fields) == ["page_token"]


def test_an_unknown_session_lists_nothing(log: Calls) -> None:
    assert unresolved(log.other("no-such-session")) == []
