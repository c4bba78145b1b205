"""RecordRequest keeps what was sent; VerifyRequests makes it again."""

from __future__ import annotations

from typing import Any

import pytest
from foldlog.v1 import event_pb2

from tests.contract.calls import Calls, fresh_id, imported
from tests.contract.refusal import refused
from tests.contract.requesting import HEADER, begin, rebuilt, record, sent_of, verified
from tests.contract.said import assistant, bookkeeping, header, replacing, system, user

DIGEST = bytes(range(32))
ONE_SHOT = event_pb2.OneShot(
    purpose="summary",
    provider="p",
    model="small",
    parameters_json='{"max_tokens": 500}',
    first_seq=0,
    last_seq=1,
)


def test_a_record_is_an_event_that_projects_to_nothing(log: Calls) -> None:
    begun = begin(log, user("a"), header=HEADER)
    sent = sent_of(
        begun.request, body_sha256=DIGEST, converter="openai_chat", converter_version="1"
    )
    answer = record(log, sent)
    assert (answer.seq, answer.next_seq) == (3, 4)
    (event,) = log.events(3)
    assert (event.type, event.body.request) == (event_pb2.EVENT_TYPE_REQUEST, sent)
    assert log.texts() == ["a"]


def test_recorded_requests_hold_after_all_that_can_happen(log: Calls) -> None:
    for turn in range(3):
        begun = begin(log, user(f"u{turn}"), header=HEADER)
        record(log, sent_of(begun.request))
        log.append(assistant(f"a{turn}"))
    log.append(replacing(system("S"), 0, 7), header(model="n"))
    record(log, sent_of(rebuilt(log)))
    log.rewind(5)
    record(log, sent_of(rebuilt(log)))
    child = log.fork()
    record(child, sent_of(begin(child, user("b")).request))
    for session, count in ((log, 5), (child, 6)):
        answer = verified(session)
        assert (answer.verified_count, answer.skipped_count) == (count, 0)
        assert not answer.mismatches
        assert answer.next_seq == session.get().next_seq


def test_a_request_that_was_not_the_logs_is_found(log: Calls) -> None:
    begun = begin(log, user("a"), header=HEADER)
    sent = sent_of(begun.request)
    sent.encoding_sha256 = DIGEST
    wrong = record(log, sent)
    record(log, sent_of(begun.request))
    answer = verified(log)
    (mismatch,) = answer.mismatches
    assert (mismatch.seq, mismatch.step_seq, mismatch.reason) == (wrong.seq, 0, "")
    assert mismatch.recorded_sha256 == DIGEST
    assert mismatch.rebuilt_sha256 == begun.request.sha256
    assert answer.verified_count == 2
    assert not verified(log, from_seq=wrong.seq + 1).mismatches


def test_one_shots_and_records_without_a_digest_are_skipped(log: Calls) -> None:
    begun = begin(log, user("a"), header=HEADER)
    record(log, event_pb2.SentRequest(built_at_next_seq=2, one_shot=ONE_SHOT))
    record(log, event_pb2.SentRequest(built_at_next_seq=2, body_sha256=DIGEST))
    record(log, sent_of(begun.request))
    answer = verified(log)
    assert (answer.verified_count, answer.skipped_count) == (1, 2)


def test_what_cannot_be_made_again_says_why(log: Calls) -> None:
    record(log, event_pb2.SentRequest(built_at_next_seq=0, encoding_sha256=DIGEST))
    first = begin(log, user("a"), header=HEADER)
    record(log, sent_of(first.request))
    log.append(replacing(system("S"), 0, 3))
    last = record(log, sent_of(rebuilt(log)))
    log.snapshot()
    reasons = [(each.seq, each.reason) for each in verified(log).mismatches]
    assert reasons == [(0, "HEADER_MISSING"), (4, "HISTORY_DROPPED")]
    assert last.seq == 6


def test_a_fork_still_verifies_what_its_parent_dropped(log: Calls) -> None:
    record(log, sent_of(begin(log, user("a"), header=HEADER).request))
    child = log.fork()
    log.append(replacing(system("S"), 0, 3))
    log.snapshot()
    assert not verified(child).mismatches
    assert [each.reason for each in verified(log).mismatches] == ["HISTORY_DROPPED"]


def test_records_survive_an_import(log: Calls) -> None:
    begun = begin(log, user("a"), header=HEADER)
    record(log, sent_of(begun.request, converter="c", converter_version="2"))
    copy = log.other(fresh_id())
    imported(log.stub, log.export(), copy.session_id)
    assert copy.events(3)[0].body == log.events(3)[0].body
    assert verified(copy).verified_count == 1
    assert not verified(copy).mismatches


def test_an_imported_record_of_nonsense_is_reported_not_believed(log: Calls) -> None:
    sent = event_pb2.SentRequest(built_at_next_seq=99, encoding_sha256=DIGEST)
    body = event_pb2.EventBody(request=sent)
    log.restore(event_pb2.Event(seq=0, body=body), event_pb2.Event(seq=1, body=user("a").body))
    assert [each.reason for each in verified(log).mismatches] == ["SEQ_BEYOND_HEAD"]


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("built_at_next_seq", {"built_at_next_seq": -1}),
        ("encoding_sha256", {"encoding_sha256": b"short"}),
        ("body_sha256", {"body_sha256": DIGEST + b"x"}),
        ("step_seq", {"step_seq": 3, "built_at_next_seq": 3}),
        ("step_seq", {"step_seq": 1, "built_at_next_seq": 3}),
        ("step_seq", {"step_seq": -1, "built_at_next_seq": 3}),
        ("one_shot.purpose", {"one_shot": event_pb2.OneShot(model="m")}),
        ("one_shot", {"one_shot": event_pb2.OneShot(purpose="p", first_seq=0)}),
        ("one_shot", {"one_shot": event_pb2.OneShot(purpose="p", first_seq=2, last_seq=1)}),
        ("one_shot", {"one_shot": event_pb2.OneShot(purpose="p", first_seq=0, last_seq=3)}),
        (
            "one_shot.parameters_json",
            {"one_shot": event_pb2.OneShot(purpose="p", parameters_json="[]")},
        ),
        ("one_shot", {"one_shot": ONE_SHOT, "step_seq": 0}),
        ("one_shot", {"one_shot": ONE_SHOT, "encoding_sha256": DIGEST}),
    ],
)
def test_malformed_records_are_refused(log: Calls, path: str, fields: dict[str, Any]) -> None:
    begin(log, user("a"), header=HEADER)
    with refused("INVALID_FIELD") as told:
        record(log, event_pb2.SentRequest(**{"built_at_next_seq": 3} | fields))
    assert list(told.fields or {}) == [f"sent.{path}"]
    assert log.get().next_seq == 3


def test_records_of_what_is_not_there_yet_are_refused(log: Calls) -> None:
    begin(log, user("a"), header=HEADER)
    with refused("SEQ_BEYOND_HEAD", seq=3, next_seq=3):
        record(log, event_pb2.SentRequest(built_at_next_seq=4))
    with refused("SEQ_BEYOND_HEAD"):
        record(log, event_pb2.SentRequest(built_at_next_seq=9, step_seq=8))


def test_records_come_by_their_own_call_only(log: Calls) -> None:
    with refused("INVALID_FIELD") as told:
        log.append(bookkeeping(request=event_pb2.SentRequest()))
    assert list(told.fields or {}) == ["events[0].body.request"]


def test_a_record_needs_the_writer_and_is_written_once(log: Calls) -> None:
    begun = begin(log, user("a"), header=HEADER)
    sent = sent_of(begun.request)
    first = record(log, sent, request_id="r")
    assert record(log, sent, request_id="r") == first
    sent.converter = "other"
    with refused("REQUEST_ID_REUSED"):
        record(log, sent, request_id="r")
    log.open_writer()
    with refused("WRITER_EPOCH_REQUIRED"):
        record(log, sent)


def test_a_step_long_closed_can_still_be_recorded(log: Calls) -> None:
    begun = begin(log, user("a"), header=HEADER)
    log.append(bookkeeping(step_end=event_pb2.StepEnd()))
    begin(log)
    record(log, sent_of(begun.request))
    child = log.fork()
    record(child, sent_of(begun.request))
    assert verified(child).verified_count == 2
