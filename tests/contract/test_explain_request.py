"""ExplainRequest: what broke the prefix cache, and what that cost."""

from __future__ import annotations

from foldlog.v1 import event_pb2, service_pb2

from tests.contract.calls import Calls
from tests.contract.refusal import refused
from tests.contract.requesting import HEADER, begin, change_of, explained, record_header
from tests.contract.said import (
    assistant,
    bookkeeping,
    event,
    header,
    message,
    replacing,
    replacing_entries,
    system,
    user,
)
from tests.independent.rebuilding import lines_of, request_at, steps_of

REPLACE = service_pb2.CHANGE_KIND_REPLACE
REWIND = service_pb2.CHANGE_KIND_REWIND
HEADER_KIND = service_pb2.CHANGE_KIND_HEADER
REORDERED = service_pb2.CHANGE_KIND_TOOLS_REORDERED
BYTES = service_pb2.CHANGE_KIND_BYTES
TOOLS = ['{"name": "f"}', '{"name": "g"}']


def step(log: Calls, *events: event_pb2.NewEvent, **fields: object) -> int:
    """Begin a step and return its seq."""
    return begin(log, *events, **fields).step.step_seq


def lost_bytes(log: Calls, before: int, after: int) -> int:
    """Return the bytes of a request from the first in which the next one differs, by definition."""
    lines = lines_of(log.export())
    steps = steps_of(lines)
    old, new = (request_at(lines, steps[seq]) or b"" for seq in (before, after))
    pairs = enumerate(zip(old, new, strict=False))
    return len(old) - next((i for i, (a, b) in pairs if a != b), min(len(old), len(new)))


def test_the_first_request_has_nothing_before_it(log: Calls) -> None:
    first = step(log, user("a"), header=HEADER)
    change = change_of(log, first)
    assert change == service_pb2.RequestChange(step_seq=first)


def test_a_request_that_only_adds_is_an_extension(log: Calls) -> None:
    first = step(log, user("a"), header=HEADER)
    second = step(log, assistant("b"), user("c"))
    change = change_of(log, second)
    assert (change.is_extension, change.previous_step_seq) == (True, first)
    assert (change.previous_messages, change.lost_messages, change.kind) == (1, 0, 0)
    assert not change.HasField("cause_seq")
    assert not explained(log).changes


def test_a_replace_is_the_cause_of_what_it_took(log: Calls) -> None:
    first = step(log, *(user(f"u{i}") for i in range(6)), header=HEADER)
    cause = log.append(replacing(system("S"), 3, 4), user("x")).first_seq
    second = step(log)
    change = change_of(log, second)
    assert (change.kind, change.cause_seq, change.is_extension) == (REPLACE, cause, False)
    assert (change.message_index, change.previous_messages, change.lost_messages) == (2, 6, 4)
    assert list(change.header_fields) == []
    # The frames of the messages' lengths differ first: a message is lost as a whole.
    assert 0 <= change.lost_bytes - lost_bytes(log, first, second) < 60
    assert change.lost_tokens == change.lost_bytes // 4


def test_the_last_of_several_replaces_that_reached_the_place_is_the_cause(log: Calls) -> None:
    step(log, *(user(f"u{i}") for i in range(6)), header=HEADER)
    log.append(replacing(system("S"), 3, 3))
    cause = log.append(replacing(system("S"), 2, 4)).first_seq
    log.append(replacing(system("S"), 5, 6))
    change = change_of(log, step(log))
    assert (change.cause_seq, change.message_index) == (cause, 1)


def test_a_rewind_is_the_cause_of_what_it_undid(log: Calls) -> None:
    record_header(log)
    step(log, user("a"), user("b"))
    cause = log.rewind(2).seq
    change = change_of(log, step(log, user("c")))
    assert (change.kind, change.cause_seq, change.message_index) == (REWIND, cause, 1)


def test_a_compaction_that_was_taken_back_costs_nothing(log: Calls) -> None:
    step(log, user("a"), user("b"), header=HEADER)
    log.append(replacing(system("S"), 1, 2))
    log.rewind(3)
    assert change_of(log, step(log, user("c"))).is_extension


def test_a_header_change_costs_everything(log: Calls) -> None:
    first = step(log, user("a"), user("b"), header=HEADER)
    record_header(log, event_pb2.RequestHeader(provider="p", model="m2", system_prompt="x"))
    second = step(log)
    change = change_of(log, second)
    assert (change.kind, list(change.header_fields)) == (HEADER_KIND, ["model", "system_prompt"])
    assert not change.HasField("message_index")
    assert (change.lost_messages, change.previous_messages) == (2, 2)
    assert change.cause_seq == 4
    lines = lines_of(log.export())
    assert change.lost_bytes == len(request_at(lines, steps_of(lines)[first]) or b"")


def test_a_header_and_a_message_that_change_together(log: Calls) -> None:
    step(log, user("a"), user("b"), header=HEADER)
    log.append(replacing(system("S"), 2, 2))
    second = step(log, header=event_pb2.RequestHeader(model="x"))
    change = change_of(log, second)
    assert (change.kind, change.message_index, change.cause_seq) == (HEADER_KIND, 1, second + 1)


def test_a_rewind_behind_a_header_is_the_cause(log: Calls) -> None:
    step(log, user("a"), header=HEADER)
    step(log, header=event_pb2.RequestHeader(model="x"))
    cause = log.rewind(2).seq
    change = change_of(log, step(log))
    assert (change.kind, change.cause_seq) == (REWIND, cause)
    assert "model" in change.header_fields


def test_tools_in_another_order(log: Calls) -> None:
    step(log, header=event_pb2.RequestHeader(model="m", tools_json=TOOLS))
    turned = event_pb2.RequestHeader(model="m", tools_json=TOOLS[::-1])
    change = change_of(log, step(log, header=turned))
    assert (change.kind, list(change.header_fields)) == (REORDERED, ["tools_json"])


def test_the_same_header_in_other_bytes(log: Calls) -> None:
    step(log, header=event_pb2.RequestHeader(model="m", tools_json=TOOLS))
    cause = log.append(header(model="m", tools_json=['{"name":"f"}', TOOLS[1]])).first_seq
    change = change_of(log, step(log))
    assert (change.kind, list(change.header_fields)) == (BYTES, ["tools_json"])
    assert change.cause_seq == cause


def opaque(json: str) -> event_pb2.NewEvent:
    said = message("user")
    part = said.parts.parts.add()
    part.opaque.kind, part.opaque.json = "k", json
    return event(said)


def test_the_same_message_in_other_bytes(log: Calls) -> None:
    step(log, opaque('{"a": 1}'), user("b"), header=HEADER)
    cause = log.append(replacing_entries(opaque('{"a":1}'), 1, 1)).first_seq
    change = change_of(log, step(log))
    assert (change.kind, change.cause_seq, change.message_index) == (BYTES, cause, 0)


def test_a_replace_by_the_same_message_costs_nothing(log: Calls) -> None:
    step(log, user("a"), user("b"), header=HEADER)
    log.append(replacing_entries(user("a"), 1, 1))
    second = step(log)
    assert change_of(log, second).is_extension
    assert not explained(log).changes


def test_steps_without_any_header_are_compared_too(log: Calls) -> None:
    started = bookkeeping(step_start=event_pb2.StepStart())
    log.append(started, user("a"))
    second = log.append(started, user("b")).first_seq
    assert change_of(log, second).is_extension
    third = log.append(replacing(system("S"), 1, 1), started).first_seq + 1
    assert change_of(log, third).kind == REPLACE


def test_a_fork_is_compared_with_its_parents_steps(log: Calls) -> None:
    record_header(log)
    first = step(log, user("a"), user("b"))
    child = log.fork(at_seq=2)
    step(child)
    change = change_of(child, step(child, user("c")))
    assert (change.is_extension, change.previous_messages) == (True, 1)
    assert explained(child).step_count == 3
    assert change_of(child, first).previous_messages == 0


def test_a_session_lists_every_break_page_by_page(log: Calls) -> None:
    breaks = []
    step(log, user("a"), header=HEADER)
    for number in range(7):
        head = log.get().next_seq
        step(log, user(f"u{number}"))
        log.append(replacing(system(f"S{number}"), 0, head))
        breaks.append(step(log))
    whole = explained(log)
    assert [change.step_seq for change in whole.changes] == breaks
    assert (whole.step_count, whole.next_seq) == (15, log.get().next_seq)
    page, paged, count = explained(log, page_size=3), [], 0
    while True:
        paged += page.changes
        count += page.step_count
        if not page.next_page_token:
            break
        page = explained(log, page_size=3, page_token=page.next_page_token)
    assert paged == list(whole.changes)
    assert count == 15
    for change in whole.changes:
        assert change_of(log, change.step_seq) == change


def test_what_a_snapshot_dropped_is_missing_in_the_bytes_only(log: Calls) -> None:
    step(log, user("a" * 1_000), user("b"), header=HEADER)
    log.append(replacing(system("S"), 1, 1))
    second = step(log)
    before = change_of(log, second)
    log.snapshot()
    after = change_of(log, second)
    assert before.lost_bytes - after.lost_bytes > 1_000
    after.lost_bytes, after.lost_tokens = before.lost_bytes, before.lost_tokens
    assert after == before


def test_what_is_no_step_is_refused(log: Calls) -> None:
    log.append(user("a"))
    with refused("INVALID_FIELD") as told:
        explained(log, 0)
    assert list(told.fields or {}) == ["step_seq"]
    with refused("SEQ_BEYOND_HEAD"):
        explained(log, 1)
    with refused("INVALID_FIELD") as told:
        explained(log, page_token="x")
    assert list(told.fields or {}) == ["page_token"]
    assert explained(log).step_count == 0


def test_begin_step_and_the_report_agree(log: Calls) -> None:
    begun = [begin(log, user("a"), header=HEADER)]
    log.append(replacing(system("S"), 1, 1))
    begun.append(begin(log))
    begun.append(begin(log, user("b")))
    log.rewind(3)
    begun.append(begin(log))
    begun.append(begin(log, header=event_pb2.RequestHeader(model="x")))
    for each in begun[1:]:
        change = change_of(log, each.step.step_seq)
        assert change.is_extension == each.step.extends_previous


def test_what_a_rewind_took_back_is_no_cause(log: Calls) -> None:
    step(log, *(user(f"u{i}") for i in range(6)), header=HEADER)
    cause = log.append(replacing(system("S"), 5, 5)).first_seq
    log.append(replacing(system("S"), 1, 2))
    log.rewind(cause)
    change = change_of(log, step(log))
    assert (change.kind, change.cause_seq, change.message_index) == (REPLACE, cause, 4)


def test_a_header_that_a_rewind_came_back_to_is_the_cause(log: Calls) -> None:
    step(log, user("a"), header=HEADER)
    cause = log.append(header(model="x")).first_seq
    log.append(header(model="y"))
    log.rewind(cause)
    change = change_of(log, step(log))
    assert (change.kind, change.cause_seq) == (HEADER_KIND, cause)


def test_what_a_rewind_brought_back_is_the_cause_again(log: Calls) -> None:
    step(log, user("a"), user("b"), header=HEADER)
    cause = log.append(replacing(system("S"), 2, 2)).first_seq
    log.rewind(-1)
    log.append(user("c"))
    log.rewind(cause)
    change = change_of(log, step(log))
    assert (change.kind, change.cause_seq, change.message_index) == (REPLACE, cause, 1)
