"""Messages as a person reads them."""

from __future__ import annotations

import io

import pytest
from foldlog.cli.items import Beginning, Entry, Item, Remark
from foldlog.cli.transcript import Transcript
from foldlog.core.message import (
    AttachmentPart,
    Message,
    OpaquePart,
    ReasoningPart,
    Role,
    TextPart,
    ToolCall,
    ToolCallPart,
    UnknownPart,
)
from rich.console import Console


def drawn(*items: Item, color: bool = False, width: int = 80, **options: bool) -> str:
    """Return what a console of so many columns shows, without spaces at the ends of lines."""
    file = io.StringIO()
    console = Console(
        file=file, width=width, highlight=False, markup=False, force_terminal=color, no_color=None
    )
    transcript = Transcript(**options)
    for item in items:
        console.print(transcript.rendered(item))
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def said(role: Role, content: object, seq: int = 0, **fields: object) -> Entry:
    """Return an entry of a message at its own seq."""
    return Entry(seq, seq, Message(role, content, **fields))  # type: ignore[arg-type]


CALL = ToolCall("c1", "read_file", '{"path": "a.py", "line": 3}')


def test_a_conversation_reads_from_top_to_bottom() -> None:
    text = drawn(
        said(Role.SYSTEM, "Be brief.", 0),
        said(Role.USER, "Read a.py,\nplease.", 1),
        said(Role.ASSISTANT, None, 2, tool_calls=(CALL,)),
        said(Role.TOOL, "x = 1", 3, tool_call_id="c1", name="read_file"),
    )
    assert text == "\n".join(
        (
            "    0   system    Be brief.",
            "    1   user      Read a.py,",
            "                  please.",
            '    2   assistant → read_file(path="a.py", line=3)  c1',
            "    3   tool      ← read_file c1 of 2",
            "                  x = 1",
        )
    )


def test_a_result_without_a_call_above_is_said_to_be_one() -> None:
    assert "answers no call above" in drawn(said(Role.TOOL, "x", tool_call_id="c9"))


def test_in_a_part_of_a_log_an_unseen_call_is_no_fault() -> None:
    assert "answers" not in drawn(said(Role.TOOL, "x", tool_call_id="c9"), knows_all=False)


def test_a_repeated_call_id_links_to_the_nearest_call_before() -> None:
    text = drawn(
        said(Role.ASSISTANT, None, 1, tool_calls=(CALL,)),
        said(Role.ASSISTANT, None, 5, tool_calls=(CALL,)),
        said(Role.TOOL, "x", 6, tool_call_id="c1"),
    )
    assert "c1 of 5" in text


def test_what_does_not_count_is_struck_with_the_reason_and_links_nothing() -> None:
    gone = Entry(2, 2, Message(Role.ASSISTANT, "old", (CALL,)), gone="shadowed by 9")
    text = drawn(gone, said(Role.TOOL, "x", 3, tool_call_id="c1"), color=True)
    assert "shadowed by 9" in text
    assert "\x1b[2;9mold" in text
    assert "answers no call above" in text


def test_a_replace_shows_where_it_stands() -> None:
    entry = Entry(12, 3, Message(Role.SYSTEM, "Summary"), shadows="in place of 3 to 9, 5 events")
    lines = drawn(entry).splitlines()
    assert lines == [
        " 12@3   system    in place of 3 to 9, 5 events",
        "                  Summary",
    ]


def test_messages_of_a_group_are_tied() -> None:
    text = drawn(
        *(
            Entry(seq, seq, Message(Role.TOOL, "x", tool_call_id="c"), group)
            for seq, group in enumerate(("g", "g", None, "h"))
        )
    )
    marks = [line[6] for line in text.splitlines() if line[:5].strip()]
    assert marks == ["┌", "│", " ", "┌"]


def test_parts_stand_in_their_order_and_placed_calls_are_not_repeated() -> None:
    parts = (
        ReasoningPart(text="think"),
        ToolCallPart(0),
        TextPart("then"),
        AttachmentPart(b"\x01" * 32, "image/png", "a.png", 1_234),
        OpaquePart("openai.audio", '{"a":1}'),
        ReasoningPart(json="{}"),
        UnknownPart(),
    )
    text = drawn(said(Role.ASSISTANT, parts, tool_calls=(CALL,)), width=100)
    assert [line[18:] for line in text.splitlines()] == [
        "think",
        '→ read_file(path="a.py", line=3)  c1',
        "then",
        "[attachment a.png, image/png, 1,234 bytes, sha256 010101010101…]",
        "[openai.audio, 7 bytes of JSON]",
        "[opaque reasoning]",
        "[a part of a newer release]",
    ]


@pytest.mark.parametrize(
    ("content", "expected"), [(None, "no content"), ("", "empty text"), ("a", "a")]
)
def test_no_content_and_an_empty_text_differ(content: str | None, expected: str) -> None:
    assert drawn(said(Role.ASSISTANT, content)).endswith(expected)


def test_long_results_and_arguments_are_abbreviated_unless_all_is_asked_for() -> None:
    call = ToolCall("c1", "write", '{"text": "%s"}' % ("y" * 500))
    items = (
        said(Role.ASSISTANT, None, 1, tool_calls=(call,)),
        said(Role.TOOL, "\n".join("z" * 10 for _ in range(100)), 2, tool_call_id="c1"),
    )
    short, full = drawn(*items), drawn(*items, is_full=True)
    assert "1,012 more characters" in short
    assert len(short.splitlines()) < 15
    assert full.count("z") == 1_000
    assert full.count("y") == 500


def test_a_persons_long_text_is_never_abbreviated() -> None:
    assert drawn(said(Role.USER, "w" * 5_000)).count("w") == 5_000


@pytest.mark.parametrize("is_full", [False, True])
def test_no_field_can_steer_the_terminal(is_full: bool) -> None:
    evil = "\x1b]0;evil\x07\x1b[2J"
    message = Message(
        Role.ASSISTANT,
        (TextPart(evil), ReasoningPart(text=evil), OpaquePart(evil, "{}")),
        (ToolCall(evil, evil, evil), ToolCall("c", "n", '{"a": "\\u001b[2J"}')),
        tool_call_id=evil,
        name=evil,
        reasoning=evil,
    )
    text = drawn(
        Entry(0, 0, message, gone="undone by 1"),
        Entry(1, 1, message),
        Remark(2, f"custom {evil}"),
        is_full=is_full,
    )
    assert "\x1b" not in text
    assert "\x07" not in text


def test_turns_are_set_apart() -> None:
    turn = Beginning(4, "turn 2 · user", is_turn=True)
    lines = drawn(turn, Remark(5, "step 1")).split("\n")
    assert lines == ["", "    4   ── turn 2 · user", "    5   · step 1"]
