"""Violations as a person understands them."""

from __future__ import annotations

import io

import pytest
from foldlog.cli.violation import MEANING, explained
from foldlog.core.invariant import Sketch, Violation, ViolationKind
from foldlog.core.message import Role
from rich.console import Console


def drawn(violation: Violation, color: bool = False) -> str:
    file = io.StringIO()
    console = Console(file=file, width=90, highlight=False, markup=False, force_terminal=color)
    console.print(explained(violation))
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


SUBSTITUTED = Violation(
    ViolationKind.MISSING_MESSAGE,
    index=3,
    request_length=5,
    log_length=6,
    extra=(Sketch(Role.USER, "Please fix the tset"),),
    missing=(Sketch(Role.USER, "Please fix the test"),),
    log_seq=4,
)


def test_a_substitution_says_what_where_both_sides_and_what_to_do() -> None:
    assert drawn(SUBSTITUTED).splitlines() == [
        "✗ Missing message",
        "  The log has a message that the request lacks, or has with other content.",
        "  At message 4 (the request has 5, the log 6); in the log: event 4.",
        "  - only in the log      user  Please fix the test",
        "  + only in the request  user  Please fix the tset",
        "  What to do: Build the request from the log's messages. If it was shortened on purpose,",
        "  log that first, as a replace or a rewind.",
    ]


def test_of_two_texts_what_differs_is_underlined() -> None:
    text = drawn(SUBSTITUTED, color=True)
    assert "Please fix the t\x1b[4;31mest" in text
    assert "Please fix the t\x1b[4;32mset" in text


def test_sketches_tell_calls_names_and_what_is_answered() -> None:
    violation = Violation(
        ViolationKind.EXTRA_MESSAGE,
        index=2,
        request_length=3,
        log_length=2,
        extra=(
            Sketch(Role.ASSISTANT, None, 2),
            Sketch(Role.TOOL, "\x1b[2J", 0, "c1", "clock"),
            Sketch(Role.SYSTEM),
            Sketch(9, ""),
        ),
    )
    rows = [" ".join(line.split()) for line in drawn(violation).splitlines()[3:7]]
    assert rows == [
        "+ only in the request assistant 2 tool calls",
        "+ only in the request tool \\x1b[2J clock answers c1",
        "+ only in the request system whatever it says",
        "+ only in the request role 9 empty text",
    ]


def test_a_header_mismatch_names_the_fields_and_no_message() -> None:
    violation = Violation(
        ViolationKind.HEADER_MISMATCH, 0, 5, 5, header_fields=("model", "tools_json")
    )
    text = drawn(violation)
    assert text.startswith("✗ Header mismatch: model, tools_json")
    assert "At message" not in text


def test_an_orphan_names_the_call() -> None:
    violation = Violation(ViolationKind.ORPHANED_TOOL_RESULT, 1, 2, 2, tool_call_id="c\x1b7")
    assert drawn(violation).startswith("✗ Orphaned tool result: c\\x1b7")


@pytest.mark.parametrize("kind", [kind for kind in ViolationKind if kind])
def test_every_kind_has_a_meaning_and_an_advice(kind: ViolationKind) -> None:
    meaning, advice = MEANING[kind]
    assert meaning.endswith(".")
    assert advice.endswith(".")
