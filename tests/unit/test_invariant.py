"""The check, rule by rule."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from foldlog.core.header import Header
from foldlog.core.invariant import (
    CheckOptions,
    Sketch,
    Violation,
    ViolationKind,
    check,
    equality_key,
    messages_equal,
    sketch,
)
from foldlog.core.message import (
    AttachmentPart,
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCall,
    ToolCallPart,
    UnknownPart,
)
from foldlog.v1.check_pb2 import ViolationKind as Wire

KIND = ViolationKind
STRICT = CheckOptions(strict_system=True)
BYTES = CheckOptions(byte_exact=True)


def system(text: str = "sys") -> Message:
    return Message(Role.SYSTEM, text)


def user(text: str = "u") -> Message:
    return Message(Role.USER, text)


def assistant(text: str | None = "a", *ids: str | None) -> Message:
    return Message(Role.ASSISTANT, text, tuple(ToolCall(id_, "f", "{}") for id_ in ids))


def result(call_id: str | None, text: str = "r") -> Message:
    return Message(Role.TOOL, text, tool_call_id=call_id)


def parts(*given: Part) -> Message:
    return Message(Role.USER, given)


def found(request: list[Message], fold: list[Message], **given: Any) -> Violation:
    violation = check(request, fold, **given)
    assert violation is not None
    return violation


def told(violation: Violation) -> tuple[ViolationKind, int, int, int]:
    return violation.kind, violation.index, violation.request_length, violation.log_length


PASSING: dict[str, tuple[list[Message], list[Message]]] = {
    "nothing": ([], []),
    "the fold itself": ([system(), user(), assistant()], [system(), user(), assistant()]),
    "system texts are not compared": ([system("x"), user()], [system("y"), user()]),
    "an overlay before a fold without system": ([system("o"), user()], [user()]),
    "an overlay before an empty fold": ([system("o")], []),
    "a rewritten summary in the middle": (
        [system("o"), user(), system("x"), user("v")],
        [user(), system("y"), user("v")],
    ),
    "metadata, reasoning and times are not compared": (
        [Message(Role.ASSISTANT, "a", reasoning="x", metadata_json="{}")],
        [Message(Role.ASSISTANT, "a", reasoning="y", metadata_json="[]")],
    ),
    "the same JSON in other bytes": (
        [parts(OpaquePart("k", '{"a":1,"b":"\\u00e9"}'))],
        [parts(OpaquePart("k", '{ "b": "\u00e9", "a": 1 }'))],
    ),
    "an unanswered call": ([assistant("", "c")], [assistant("", "c")]),
    "two results of one call": (
        [assistant("", "c"), result("c"), result("c")],
        [assistant("", "c"), result("c"), result("c")],
    ),
    "a result after other messages": (
        [assistant("", "c"), user(), system(), result("c")],
        [assistant("", "c"), user(), system(), result("c")],
    ),
    "an empty assistant message": ([user(), assistant("")], [user(), assistant("")]),
}


@pytest.mark.parametrize(("request_", "fold"), PASSING.values(), ids=PASSING)
def test_a_request_that_can_be_derived(request_: list[Message], fold: list[Message]) -> None:
    assert check(request_, fold) is None


Told = tuple[ViolationKind, int, int, int]
FAILING: dict[str, tuple[list[Message], list[Message], Told]] = {
    "missing at the end": ([user("1")], [user("1"), user("2")], (KIND.MISSING_MESSAGE, 1, 1, 2)),
    "missing in the middle": (
        [user("1"), user("3")],
        [user("1"), user("2"), user("3")],
        (KIND.MISSING_MESSAGE, 1, 2, 3),
    ),
    "an empty request": ([], [user()], (KIND.MISSING_MESSAGE, 0, 0, 1)),
    "an overlay alone counts for nothing": (
        [system("o")],
        [user()],
        (KIND.MISSING_MESSAGE, 0, 0, 1),
    ),
    "a substitution is missing": ([user("x")], [user("y")], (KIND.MISSING_MESSAGE, 0, 1, 1)),
    "one of two equal messages": ([user()], [user(), user()], (KIND.MISSING_MESSAGE, 1, 1, 2)),
    "extra at the end": ([user("1"), user("2")], [user("1")], (KIND.EXTRA_MESSAGE, 1, 2, 1)),
    "once too often": (
        [user("1"), user("1"), user("2")],
        [user("1"), user("2")],
        (KIND.EXTRA_MESSAGE, 1, 3, 2),
    ),
    "a second leading system message": (
        [system("o"), system("p"), user()],
        [user()],
        (KIND.EXTRA_MESSAGE, 0, 2, 1),
    ),
    "no slot where the fold begins with system": (
        [system("o"), system("s"), user()],
        [system("s"), user()],
        (KIND.EXTRA_MESSAGE, 1, 3, 2),
    ),
    "the slot takes one, an empty fold none": (
        [system("o"), system("p")],
        [],
        (KIND.EXTRA_MESSAGE, 0, 1, 0),
    ),
    "swapped": ([user("1"), user("2")], [user("2"), user("1")], (KIND.ORDER, 0, 2, 2)),
    "system and user swapped": (
        [system(), system("mid"), user()],
        [system(), user(), system("mid")],
        (KIND.ORDER, 1, 3, 3),
    ),
    "a summary moved to the front is missing": (
        [system("S"), user("1"), user("2")],
        [user("1"), system("S"), user("2")],
        (KIND.MISSING_MESSAGE, 1, 2, 3),
    ),
    "indexes are counted after the slot": (
        [system("o"), user("1"), user("x")],
        [user("1"), user("2")],
        (KIND.MISSING_MESSAGE, 1, 2, 2),
    ),
    "an extra result is extra before it is an orphan": (
        [user(), result("ghost")],
        [user()],
        (KIND.EXTRA_MESSAGE, 1, 2, 1),
    ),
    "an unknown role": ([Message(99, "u")], [user()], (KIND.MISSING_MESSAGE, 0, 1, 1)),
    "no role": ([Message(0)], [], (KIND.EXTRA_MESSAGE, 0, 1, 0)),
    "an unknown part": (
        [parts(UnknownPart())],
        [parts(TextPart("a"))],
        (KIND.MISSING_MESSAGE, 0, 1, 1),
    ),
}


@pytest.mark.parametrize(("request_", "fold", "expected"), FAILING.values(), ids=FAILING)
def test_a_departure_has_kind_index_and_lengths(
    request_: list[Message], fold: list[Message], expected: Told
) -> None:
    assert told(found(request_, fold)) == expected


def test_a_substitution_sketches_both_sides() -> None:
    violation = found([user("x")], [user("y")])
    assert violation.extra == (Sketch(Role.USER, "x"),)
    assert violation.missing == (Sketch(Role.USER, "y"),)


def test_order_sketches_nothing() -> None:
    violation = found([user("1"), user("2")], [user("2"), user("1")])
    assert (violation.extra, violation.missing) == ((), ())


def test_at_most_five_sketches_a_side_in_list_order() -> None:
    request = [user(), *(user(text) for text in "zamkqc")]
    fold = [user(), *(assistant(text) for text in "fedcba")]
    violation = found(request, fold)
    assert [each.preview for each in violation.extra] == [*"zamkq"]
    assert [each.preview for each in violation.missing] == [*"fedcb"]


def test_of_equal_messages_the_later_ones_are_the_surplus() -> None:
    violation = found([user("a"), user("x"), user("a"), user("a")], [user("a")])
    assert [each.preview for each in violation.extra] == ["x", "a", "a"]


def test_the_seq_of_the_logs_message_at_the_index_is_told() -> None:
    fold = [user("1"), user("2"), user("3")]
    assert found([fold[0], fold[2]], fold, fold_seqs=[4, 7, 9]).log_seq == 7
    assert found([*fold, user("4")], fold, fold_seqs=[4, 7, 9]).log_seq is None
    assert found([fold[0]], fold).log_seq is None


SKETCHES = {
    "a text": (user("hi"), Sketch(Role.USER, "hi")),
    "120 code points of a text": (user("\u00e9" * 200), Sketch(Role.USER, "\u00e9" * 120)),
    "code points, not units": (user("\U0001f525" * 121), Sketch(Role.USER, "\U0001f525" * 120)),
    "no content": (assistant(None), Sketch(Role.ASSISTANT)),
    "an empty text": (assistant(""), Sketch(Role.ASSISTANT, "")),
    "parts": (
        parts(TextPart("secret"), ToolCallPart(0)),
        Sketch(Role.USER, "[2 content parts]"),
    ),
    "no parts": (parts(), Sketch(Role.USER, "[0 content parts]")),
    "calls": (assistant("", "x", "y"), Sketch(Role.ASSISTANT, "", 2)),
    "a result": (
        replace(result("c", "3 hits"), name="grep"),
        Sketch(Role.TOOL, "3 hits", tool_call_id="c", name="grep"),
    ),
    "a system message is its role": (
        Message(Role.SYSTEM, "secret", (ToolCall("c"),), "c", "n"),
        Sketch(Role.SYSTEM),
    ),
    "an unknown role": (Message(77, "x"), Sketch(77, "x")),
}


@pytest.mark.parametrize(("message", "expected"), SKETCHES.values(), ids=SKETCHES)
def test_a_sketch_says_enough_and_no_more(message: Message, expected: Sketch) -> None:
    assert sketch(message) == expected


BASE = Message(Role.ASSISTANT, "a", (ToolCall("c", "f", "{}"),), "t", "n")
UNEQUAL = {
    "role": replace(BASE, role=Role.USER),
    "text": replace(BASE, content="b"),
    "no content": replace(BASE, content=None),
    "the text as a part": replace(BASE, content=(TextPart("a"),)),
    "no calls": replace(BASE, tool_calls=()),
    "a call's id": replace(BASE, tool_calls=(ToolCall("d", "f", "{}"),)),
    "a call's name": replace(BASE, tool_calls=(ToolCall("c", "g", "{}"),)),
    "a call's arguments, the same as JSON": replace(BASE, tool_calls=(ToolCall("c", "f", "{ }"),)),
    "a call without arguments": replace(BASE, tool_calls=(ToolCall("c", "f"),)),
    "tool_call_id": replace(BASE, tool_call_id="u"),
    "no tool_call_id": replace(BASE, tool_call_id=None),
    "name": replace(BASE, name="m"),
    "an empty name": replace(BASE, name=""),
}


@pytest.mark.parametrize("other", UNEQUAL.values(), ids=UNEQUAL)
def test_each_compared_field_makes_a_difference(other: Message) -> None:
    assert not messages_equal(BASE, other)
    assert not messages_equal(other, BASE)
    assert equality_key(BASE) != equality_key(other)
    assert told(found([other], [BASE])) == (KIND.MISSING_MESSAGE, 0, 1, 1)


PARTS: list[Part] = [
    TextPart("a"),
    TextPart(""),
    AttachmentPart(bytes(32), "a/b"),
    AttachmentPart(bytes(32), "a/b", name=""),
    AttachmentPart(bytes(32), "a/b", size_bytes=0),
    AttachmentPart(bytes(32), "a/c"),
    AttachmentPart(bytes(31) + b"\1", "a/b"),
    ReasoningPart(text="a"),
    ReasoningPart(json='"a"'),
    ToolCallPart(0),
    ToolCallPart(1),
    OpaquePart("k", '"a"'),
    OpaquePart("l", '"a"'),
    OpaquePart("k", "1"),
    OpaquePart("k", "1.0"),
    OpaquePart("k", '{"a":1,"a":1}'),
    OpaquePart("k", '{"a":1}'),
    OpaquePart("k", "not JSON"),
    UnknownPart(),
]


def test_no_two_kinds_of_part_are_equal() -> None:
    for i, a in enumerate(PARTS):
        for j, b in enumerate(PARTS):
            assert messages_equal(parts(a), parts(b)) == (i == j), (a, b)
            assert (equality_key(parts(a)) == equality_key(parts(b))) == (i == j), (a, b)


def test_reasoning_of_neither_kind_is_an_unknown_part() -> None:
    assert messages_equal(parts(ReasoningPart()), parts(UnknownPart()))
    assert equality_key(parts(ReasoningPart())) == equality_key(parts(UnknownPart()))


def test_the_number_of_parts_counts() -> None:
    assert not messages_equal(parts(TextPart("a")), parts(TextPart("a"), TextPart("")))
    assert not messages_equal(parts(), replace(parts(), content=None))
    assert not messages_equal(parts(), user(""))


def test_multisets_are_over_canonical_json() -> None:
    a, b = parts(OpaquePart("k", '{"a":1,"b":2}')), parts(OpaquePart("k", '{"b":2,"a":1}'))
    violation = found([user(), a], [b, user()])
    assert told(violation) == (KIND.ORDER, 0, 2, 2)


ORPHANS: dict[str, tuple[list[Message], int, str | None]] = {
    "never called": ([user(), result("z")], 1, "z"),
    "called later": ([result("c"), assistant("", "c")], 0, "c"),
    "without an id": ([assistant("", "c"), result(None)], 1, None),
    "without an id, after a call without one": ([assistant("", None), result(None)], 1, None),
    "called by a user": (
        [Message(Role.USER, "u", (ToolCall("c"),)), result("c")],
        1,
        "c",
    ),
    "the first of two": ([result("x1"), result("x2")], 0, "x1"),
    "an id that is almost the same": ([assistant("", "c"), result("c ")], 1, "c "),
}


@pytest.mark.parametrize(("messages", "index", "call_id"), ORPHANS.values(), ids=ORPHANS)
def test_an_orphaned_result(messages: list[Message], index: int, call_id: str | None) -> None:
    violation = found(messages, messages, fold_seqs=range(10, 20))
    assert told(violation) == (
        KIND.ORPHANED_TOOL_RESULT,
        index,
        len(messages),
        len(messages),
    )
    assert violation.tool_call_id == call_id
    assert violation.log_seq == 10 + index
    assert (violation.extra, violation.missing) == ((), ())


HEADER = Header(model="m1", system_prompt="p", parameters_json='{"t": 1}', tools_json=('{"n": 1}',))


def test_no_header_sent_is_no_header_compared() -> None:
    assert check([user()], [user()], logged_header=HEADER) is None


def test_the_same_header_in_other_json_passes() -> None:
    sent = replace(HEADER, parameters_json='{"t":1}', tools_json=('{"n":1}',))
    assert check([], [], logged_header=HEADER, header=sent) is None


def test_a_header_mismatch_names_the_fields() -> None:
    sent = replace(HEADER, model="m2", tools_json=())
    violation = found([system("p"), user()], [user()], logged_header=HEADER, header=sent)
    assert told(violation) == (KIND.HEADER_MISMATCH, 0, 1, 1)
    assert violation.header_fields == ("model", "tools_json")


def test_a_header_against_a_log_without_one() -> None:
    assert found([], [], header=Header(model="m")).header_fields == ("model",)
    assert check([], [], header=Header()) is None


def test_messages_are_judged_before_pairs_and_pairs_before_the_header() -> None:
    orphan = [user(), result("z")]
    given: dict[str, Any] = {"logged_header": HEADER, "header": Header(model="m2")}
    assert found(orphan, [user()], **given).kind == KIND.EXTRA_MESSAGE
    assert found(orphan, orphan, **given).kind == KIND.ORPHANED_TOOL_RESULT
    assert found([user()], [user()], **given).kind == KIND.HEADER_MISMATCH


def test_strict_system_compares_system_messages_like_any_other() -> None:
    violation = found([system("x"), user()], [system("y"), user()], options=STRICT)
    assert told(violation) == (KIND.MISSING_MESSAGE, 0, 2, 2)
    assert violation.extra == violation.missing == (Sketch(Role.SYSTEM),)
    assert check([system("x")], [system("x")], options=STRICT) is None


def test_strict_system_tells_a_forged_summary_in_the_middle() -> None:
    fold = [user(), system("real"), user("v")]
    forged = [user(), system("forged"), user("v")]
    assert check(forged, fold) is None
    assert found(forged, fold, options=STRICT).index == 1


@pytest.mark.parametrize(
    ("overlay", "header", "passes"),
    [
        (system("p"), HEADER, True),
        (system("q"), HEADER, False),
        (Message(Role.SYSTEM, (TextPart("p"),)), HEADER, False),
        (system("p"), None, False),
        (system(""), None, True),
    ],
)
def test_a_strict_overlay_equals_the_headers_system_prompt(
    overlay: Message, header: Header | None, passes: bool
) -> None:
    violation = check([overlay, user()], [user()], logged_header=header, options=STRICT)
    assert (violation is None) == passes
    if violation is not None:
        assert violation.kind == KIND.HEADER_MISMATCH
        assert violation.header_fields == ("system_prompt",)


def test_a_strict_overlay_is_named_once() -> None:
    sent = replace(HEADER, system_prompt="q", model="m2")
    given: dict[str, Any] = {"logged_header": HEADER, "header": sent, "options": STRICT}
    assert found([system("q")], [], **given).header_fields == ("model", "system_prompt")


def test_reasoning_is_compared_when_asked_for() -> None:
    a, b = replace(assistant(), reasoning="x"), replace(assistant(), reasoning="y")
    options = CheckOptions(compare_reasoning=True)
    assert found([a], [b], options=options).kind == KIND.MISSING_MESSAGE
    assert found([replace(a, reasoning=None)], [a], options=options).index == 0
    assert check([a], [replace(a, metadata_json="{}")], options=options) is None


ASKED = CheckOptions(report_unanswered_calls=True)


@pytest.mark.parametrize(
    ("messages", "index", "call_id"),
    [
        ([user(), assistant("", "c")], 1, "c"),
        ([assistant("", "c", "d"), result("d")], 0, "c"),
        ([assistant("", "c"), user(), assistant("", "c"), result("c")], 0, "c"),
        ([assistant("", None), assistant("", "c")], 0, None),
    ],
)
def test_unanswered_calls_are_reported_when_asked_for(
    messages: list[Message], index: int, call_id: str | None
) -> None:
    violation = found(messages, messages, options=ASKED)
    assert (violation.kind, violation.index) == (KIND.UNANSWERED_TOOL_CALL, index)
    assert violation.tool_call_id == call_id


def test_answered_calls_are_not_reported() -> None:
    messages = [assistant("", "c", "d"), result("d"), result("c")]
    assert check(messages, messages, options=ASKED) is None


def test_other_bytes_are_reported_when_asked_for() -> None:
    a, b = parts(OpaquePart("k", '{"a":1}')), parts(OpaquePart("k", '{"a": 1}'))
    violation = found([user(), a], [user(), b], options=BYTES, fold_seqs=[3, 5])
    assert told(violation) == (KIND.BYTES_DIFFER, 1, 2, 2)
    assert (violation.log_seq, violation.header_fields) == (5, ())
    assert check([user(), a], [user(), a], options=BYTES) is None


def test_other_bytes_of_the_header_are_reported_when_asked_for() -> None:
    sent = replace(HEADER, tools_json=('{"n":1}',))
    violation = found([], [], logged_header=HEADER, header=sent, options=BYTES)
    assert (violation.kind, violation.header_fields) == (KIND.BYTES_DIFFER, ("tools_json",))


def test_other_bytes_come_last() -> None:
    a, b = parts(OpaquePart("k", "[1]")), parts(OpaquePart("k", "[ 1 ]"))
    request, fold = [a, assistant("", "c")], [b, assistant("", "c")]
    assert found(request, fold, options=BYTES).kind == KIND.BYTES_DIFFER
    both = replace(BYTES, report_unanswered_calls=True)
    assert found(request, fold, options=both).kind == KIND.UNANSWERED_TOOL_CALL
    assert found(request, [b, user()], options=both).kind == KIND.MISSING_MESSAGE


def test_multisets_are_over_values_also_when_bytes_are_asked_for() -> None:
    a, b = parts(OpaquePart("k", "[1]")), parts(OpaquePart("k", "[ 1 ]"))
    assert found([user(), a], [b, user()], options=BYTES).kind == KIND.ORDER


ODD = [
    Message(-1),
    Message(0, ""),
    Message(2**31 - 1, (UnknownPart(),)),
    Message(Role.TOOL),
    Message(Role.USER, (OpaquePart("", "[" * 5_000),)),
    Message(Role.USER, (OpaquePart("", ""), ReasoningPart(), ToolCallPart(9))),
    Message(Role.ASSISTANT, None, (ToolCall(),), "", ""),
    Message(Role.USER, "\ud800"),
]


@pytest.mark.parametrize("options", [CheckOptions(), CheckOptions(True, True, True, True)])
def test_odd_input_is_judged(options: CheckOptions) -> None:
    odd_header = Header(parameters_json="[" * 5_000, tools_json=("", "{"))
    for fold in ([], [user()], ODD[::-1]):
        assert check(ODD, fold, options=options, header=odd_header) is not None
    same = check(ODD, list(ODD), options=options)
    assert same is not None
    assert same.kind == KIND.ORPHANED_TOOL_RESULT


def test_numbers_of_the_kinds_are_the_wires() -> None:
    wire = {
        each.name.removeprefix("VIOLATION_KIND_"): each.number for each in Wire.DESCRIPTOR.values
    }
    assert wire == {kind.name: int(kind) for kind in ViolationKind}
