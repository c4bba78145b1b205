"""BeginStep: one batch, and the exact request."""

from __future__ import annotations

from foldlog.v1 import event_pb2

from tests.contract.calls import Calls
from tests.contract.digests import prefix_digest
from tests.contract.refusal import refused
from tests.contract.requesting import CHANGE, HEADER, INITIAL, RESUME, begin, rebuilt
from tests.contract.said import (
    assistant,
    bookkeeping,
    header,
    replacing,
    replacing_entries,
    result,
    system,
    turn_start,
    user,
)

STEP = event_pb2.EVENT_TYPE_STEP_START
USER = event_pb2.EVENT_TYPE_USER_MESSAGE
HEADER_TYPE = event_pb2.EVENT_TYPE_REQUEST_HEADER


def test_a_step_is_one_batch_and_its_request_is_answered(log: Calls) -> None:
    log.append(turn_start())
    begun = begin(log, user("a"), user("b"), header=HEADER, number=1, reason="user")
    step, request = begun.step, begun.request
    assert [event.type for event in log.events(1)] == [STEP, USER, USER, HEADER_TYPE]
    assert (step.step_seq, step.next_seq, step.wrote_header) == (1, 5, INITIAL)
    assert (request.about.built_at_next_seq, request.about.step_seq) == (5, 1)
    assert (request.texts, request.about.count) == (["a", "b"], 2)
    assert request.about.header == log.header_answer().header
    assert request.about.digest == prefix_digest(request.messages)
    assert [each.seq for each in request.folded] == [2, 3]
    begun_body = log.events(1)[0].body.step_start
    assert (begun_body.number, begun_body.reason) == (1, "user")


def test_events_say_where_a_steps_request_is_built(log: Calls) -> None:
    begin(log, user("a"), header=HEADER)
    log.append(user("b"), bookkeeping(step_start=event_pb2.StepStart()), user("c"))
    events = log.events()
    steps = [(e.seq, e.request_next_seq) for e in events if e.HasField("request_next_seq")]
    assert steps == [(0, 3), (4, 6)]


def test_a_request_that_only_adds_extends_the_one_before(log: Calls) -> None:
    assert not begin(log, user("a"), header=HEADER).step.extends_previous
    log.append(assistant("b", "c1"), result("r", "c1"))
    assert begin(log, user("c"), header=HEADER).step.extends_previous
    assert begin(log).step.extends_previous


def test_what_breaks_the_prefix_is_no_extension(log: Calls) -> None:
    begin(log, user("a"), header=HEADER)
    assert not begin(log, replacing(system("S"), 1, 1)).step.extends_previous
    log.rewind(2)
    assert not begin(log).step.extends_previous
    assert not begin(log, header=event_pb2.RequestHeader(model="x")).step.extends_previous
    assert begin(log).step.extends_previous


def test_content_that_checks_do_not_compare_breaks_the_prefix(log: Calls) -> None:
    begin(log, system("S"), assistant("a", reasoning="hm"), header=HEADER)
    again = assistant("a", reasoning="other")
    assert not begin(log, replacing_entries(again, 2, 2)).step.extends_previous
    assert not begin(log, replacing_entries(system("T"), 1, 1)).step.extends_previous


def test_a_step_after_one_that_was_appended(log: Calls) -> None:
    log.append(
        bookkeeping(step_start=event_pb2.StepStart()), user("a"), header(model="m"), user("b")
    )
    log.append(assistant("x"))
    assert begin(log, user("c")).step.extends_previous


def test_a_fork_goes_on_from_its_parents_request(log: Calls) -> None:
    begin(log, user("a"), header=HEADER)
    begin(log, user("b"))
    child = log.fork()
    assert begin(child, user("c")).step.extends_previous
    before = log.fork(at_seq=2)
    assert begin(before, user("z")).step.extends_previous


def test_the_header_in_force_is_kept_and_answered_in_its_own_bytes(log: Calls) -> None:
    one = event_pb2.RequestHeader(model="m", parameters_json='{"a": 1, "b": 2}')
    begin(log, header=one)
    other = event_pb2.RequestHeader(model="m", parameters_json='{"b":2,"a":1}')
    begun = begin(log, header=other)
    assert begun.step.wrote_header == event_pb2.HEADER_REASON_UNSPECIFIED
    assert begun.request.about.header.parameters_json == one.parameters_json
    assert begin(log, header=event_pb2.RequestHeader(model="n")).step.wrote_header == CHANGE


def test_a_writer_resumes_with_its_first_step(log: Calls) -> None:
    begin(log, header=HEADER)
    epoch = log.open_writer().writer_epoch
    assert begin(log, header=HEADER, writer_epoch=epoch).step.wrote_header == RESUME
    assert not begin(log, header=HEADER, writer_epoch=epoch).step.wrote_header
    epoch = log.open_writer().writer_epoch
    skipped = begin(log, header=HEADER, writer_epoch=epoch, skip_unchanged=True)
    assert not skipped.step.wrote_header


def test_a_header_among_the_events_is_the_one_compared_with(log: Calls) -> None:
    begun = begin(log, header(model="m"), header=event_pb2.RequestHeader(model="m"))
    assert not begun.step.wrote_header
    begun = begin(log, header(model="m"), header=event_pb2.RequestHeader(model="n"))
    assert (begun.step.wrote_header, begun.request.about.header.model) == (CHANGE, "n")


def test_without_any_header_there_is_no_request(log: Calls) -> None:
    with refused("HEADER_MISSING", session_id=log.session_id):
        begin(log, user("a"))
    assert log.get().next_seq == 0


def test_a_retry_gets_the_first_request_whatever_came_since(log: Calls) -> None:
    begin(log, user("x"), header=HEADER)
    first = begin(log, user("a"), header=HEADER, request_id="r")
    log.append(replacing(system("S"), 0, 4), user("later"))
    again = begin(log, user("a"), header=HEADER, request_id="r")
    assert again == first
    with refused("REQUEST_ID_REUSED"):
        begin(log, user("b"), header=HEADER, request_id="r")


def test_a_retry_knows_whether_its_header_was_written(log: Calls) -> None:
    first = begin(log, user("a"), header=HEADER, request_id="r")
    record = begin(log, header=event_pb2.RequestHeader(model="n"))
    assert record.step.wrote_header == CHANGE
    assert begin(log, user("a"), header=HEADER, request_id="r") == first


def test_skipped_messages_are_left_out_of_the_answer_only(log: Calls) -> None:
    begin(log, user("a"), user("b"), header=HEADER)
    begun = begin(log, user("c"), skip=2)
    assert (begun.request.texts, begun.request.about.count) == (["c"], 3)
    whole = rebuilt(log, step_seq=begun.step.step_seq)
    assert (whole.texts, whole.sha256) == (["a", "b", "c"], begun.request.sha256)


def test_replaces_enter_with_a_step(log: Calls) -> None:
    log.append(user("a"), user("b"), user("c"))
    begun = begin(log, replacing_entries(system("S"), 0, 1), user("d"), header=HEADER)
    assert begun.request.texts == ["S", "c", "d"]
    with refused("ENTRY_NOT_LIVE", seq=0):
        begin(log, replacing_entries(system("S"), 0, 2))
    with refused("INVALID_FIELD") as told:
        begin(log, user("x"), replacing(system("S"), 3, 1))
    assert list(told.fields or {}) == ["events[1].replace.positions"]


def test_what_a_step_refuses(log: Calls) -> None:
    with refused("INVALID_FIELD") as told:
        begin(log, user("a"), bookkeeping(step_start=event_pb2.StepStart()), header=HEADER)
    assert list(told.fields or {}) == ["events[1].body.step_start"]
    with refused("INVALID_FIELD") as told:
        begin(log, header=event_pb2.RequestHeader(tools_json=["{"]))
    assert list(told.fields or {}) == ["header.tools_json[0]"]
    with refused("INVALID_FIELD") as told:
        begin(log, header=HEADER, skip=-1)
    assert list(told.fields or {}) == ["skip"]
    with refused("SEQ_CONFLICT"):
        begin(log, header=HEADER, expected_next_seq=1)
    with refused("SESSION_NOT_FOUND"):
        begin(log.other("nowhere"), header=HEADER)
    assert log.get().next_seq == 0


def test_steps_beside_appends_apply_in_some_order(log: Calls) -> None:
    begin(log, header=HEADER)
    asked = [log.stub.AppendEvents.future(log.append_request(user(f"u{i}"))) for i in range(20)]
    begun = [begin(log, user(f"s{i}")) for i in range(5)]
    for each in asked:
        each.result()
    texts = log.texts()
    for each in begun:
        count = each.request.about.count
        assert each.request.texts == texts[:count]
        assert each.step.extends_previous


def test_a_fork_cut_within_a_step_goes_on_from_what_it_has_of_it(log: Calls) -> None:
    log.append(header(model="m"))
    begin(log, user("a"), user("b"))
    child = log.fork(at_seq=2)
    assert begin(child, user("c")).step.extends_previous
    assert begin(log, user("c")).step.extends_previous
