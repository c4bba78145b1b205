"""Claude Code sessions: what becomes the conversation, and what becomes of the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest
from foldlog.client.bodies import Custom, Rewind
from foldlog.converters import Converted, anthropic
from foldlog.core.event import PositionRange
from foldlog.core.message import Message, Role
from foldlog.importers.errors import UnreadableFileError
from foldlog.importers.report import NoteKind

from tests.importers.reading import Made, bytes_of, edited, lines, read, rows_of

SESSION = "0a6c2f3e-51b7-4b6e-9a0d-6f1b8c2d3e4f"


def row(uuid: str, parent: str | None, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    """Return a line of a session."""
    message = {"role": kind, "content": content} | more.pop("message", {})
    envelope = {"parentUuid": parent, "isSidechain": False, "sessionId": SESSION, "type": kind}
    return envelope | {"uuid": uuid, "timestamp": "2026-03-01T09:00:00Z", "message": message} | more


def blocks_of(made: Made) -> list[Any]:
    """Return the live messages as a provider's request has them."""
    messages = tuple(message for _, message in made.surface)
    request = anthropic.to_request(Converted(messages))
    found = request["messages"]
    assert isinstance(found, list)
    return found


def test_the_lines_of_an_answer_are_one_message_and_parallel_results_follow_it() -> None:
    made = read(bytes_of("claude_code_tools.jsonl"))
    assert [block["type"] for block in blocks_of(made)[1]["content"]] == [
        *("thinking", "text", "tool_use", "tool_use")
    ]
    results = [m.tool_call_id for _, m in made.surface if m.role == Role.TOOL]
    assert results == ["toolu_1", "toolu_2"]
    assert made.noted(NoteKind.UNDONE) == []


def test_a_session_carries_its_id_and_says_where_it_comes_from() -> None:
    made = read(bytes_of("claude_code_tools.jsonl"))
    assert made.session_id == SESSION
    assert made.metadata["imported"]["git_branch"] == "main"


def test_ids_are_in_the_metadata_and_what_surrounds_a_message_in_its_extra() -> None:
    made = read(bytes_of("claude_code_tools.jsonl"))
    (_, _, answer, result) = [*made.entries[1:4], made.entries[5]]
    assert isinstance(answer.event.body, Message)
    told = json.loads(answer.event.body.metadata_json or "")["claude-code"]
    assert told == {"uuids": ["a-1", "a-2", "a-3", "a-4"], "message_id": "msg_1"}
    assert [e["uuid"] for e in json.loads(answer.event.extra_json or "")["claude-code"]] == [
        *("a-1", "a-2", "a-3", "a-4")
    ]
    assert json.loads(result.event.extra_json or "")["claude-code"][0]["toolUseResult"] == {
        "stdout": "1.20"
    }


def test_bookkeeping_is_kept_to_the_letter() -> None:
    made = read(bytes_of("claude_code_tools.jsonl"))
    letters = bytes_of("claude_code_tools.jsonl").splitlines()
    customs = [e for e in made.entries if isinstance(e.event.body, Custom)]
    assert {e.line: e.event.body.payload for e in customs if isinstance(e.event.body, Custom)} == {
        number: letters[number - 1] for number in (1, 2, 7, 12, 13)
    }


def test_a_branch_that_was_gone_back_on_is_in_the_log_and_undone() -> None:
    made = read(bytes_of("claude_code_branches.jsonl"))
    assert made.said == [
        *(("user", "Name a fruit"), ("assistant", "Apple")),
        *(("user", "A vegetable instead"), ("assistant", "Leek")),
    ]
    bodies = [entry.event.body for entry in made.entries]
    assert Rewind(1) in bodies
    assert [b.content for b in bodies if isinstance(b, Message) and b.content == "Another"]
    assert made.noted(NoteKind.UNDONE) == [
        "line 3: from here the conversation was gone back on: it is undone"
    ]


def test_lines_of_subagents_and_errors_of_the_api_are_no_messages() -> None:
    made = read(bytes_of("claude_code_branches.jsonl"))
    assert made.customs == [
        *("claude-code.sidechain", "claude-code.sidechain", "claude-code.api-error")
    ]


def test_a_file_of_a_subagent_is_its_conversation() -> None:
    rows = [r for r in rows_of("claude_code_branches.jsonl") if r["isSidechain"]]
    made = read(lines(rows))
    assert made.said == [("user", "Look for vegetables"), ("assistant", "Leek")]
    assert made.session_id == f"{SESSION}/ab12"


def test_a_compaction_takes_the_place_of_what_it_sums_up() -> None:
    made = read(bytes_of("claude_code_compacted.jsonl"))
    assert [text for _, text in made.said] == [
        *("This session is being continued. Summary: we count; we are at two.",),
        *("And then?", "Three"),
    ]
    (replace,) = [e.event.replace for e in made.entries if e.event.replace]
    assert replace == PositionRange(0, 4)
    assert made.noted(NoteKind.UNREPRESENTED) == [
        "line 7: attachment: what the model was shown of it is not in the file"
    ]


@pytest.mark.parametrize(
    "kept",
    [
        {"preservedSegment": {"headUuid": "u-2", "anchorUuid": "c-1", "tailUuid": "a-2"}},
        {"preservedMessages": {"anchorUuid": "c-1", "uuids": ["u-2", "a-2"]}},
    ],
    ids=["segment", "messages"],
)
def test_messages_that_a_compaction_keeps_follow_its_summary(kept: dict[str, Any]) -> None:
    made = read(edited("claude_code_compacted.jsonl", lambda r: r[4].update(compactMetadata=kept)))
    assert [text for _, text in made.said][1:] == ["Go on", "Two", "And then?", "Three"]


def test_a_compaction_whose_parent_is_in_another_file_goes_on_from_the_line_before() -> None:
    made = read(
        edited("claude_code_compacted.jsonl", lambda r: r[4].update(logicalParentUuid="gone"))
    )
    assert len(made.said) == 3
    assert made.noted(NoteKind.UNDONE) == []
    assert made.noted(NoteKind.ASSUMED) == [
        "line 5: its parent gone is not in the file: taken to go on"
    ]


def test_a_message_whose_parent_is_lost_goes_on_from_the_line_before() -> None:
    made = read(edited("claude_code_tools.jsonl", lambda r: r.pop(8)))  # the first result
    assert made.said[-1][0] == "assistant"
    torn = read(edited("claude_code_tools.jsonl", lambda r: r.pop(9)))
    assert torn.noted(NoteKind.ASSUMED) == [
        "line 10: its parent r-2 is not in the file: taken to go on"
    ]
    assert torn.noted(NoteKind.UNDONE) == []


def test_a_result_beside_its_call_s_answer_is_no_branch() -> None:
    use = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "r"}
    made = read(
        lines(
            [
                row("u", None, "user", "q"),
                row("a", "u", "assistant", [use], message={"id": "m1"}),
                {"type": "progress", "uuid": "p", "parentUuid": "a", "sessionId": SESSION},
                row("r", "a", "user", [result]),
                row("b", "p", "assistant", [{"type": "text", "text": "x"}], message={"id": "m2"}),
            ]
        )
    )
    assert [role for role, _ in made.said] == ["user", "assistant", "tool", "assistant"]


def test_a_second_try_of_a_tool_is_a_branch() -> None:
    use = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1"}
    made = read(
        lines(
            [
                row("u", None, "user", "q"),
                row("a", "u", "assistant", [use], message={"id": "m1"}),
                row("r1", "a", "user", [result | {"content": "first"}]),
                row("r2", "a", "user", [result | {"content": "second"}]),
            ]
        )
    )
    assert made.said == [("user", "q"), ("assistant", ""), ("tool", "second")]


def test_a_line_that_stands_twice_counts_once() -> None:
    made = read(edited("claude_code_branches.jsonl", lambda r: r.append(r[0])))
    assert len(made.said) == 4
    assert made.customs[-1] == "claude-code.repeated"


def test_a_circle_of_parents_ends() -> None:
    made = read(lines([row("a", "b", "user", "x"), row("b", "a", "user", "y")]))
    assert [text for _, text in made.said] == ["x", "y"]


def test_what_no_converter_knows_is_kept_and_said() -> None:
    bad = [{"type": "tool_result", "content": "of which call?"}]
    made = read(lines([row("u", None, "user", "q"), row("r", "u", "user", bad)]))
    assert made.said == [("user", "q")]
    assert made.customs == ["claude-code.user"]
    assert "line 2: user:" in made.noted(NoteKind.UNREPRESENTED)[0]
    assert "tool_use_id" in made.noted(NoteKind.UNREPRESENTED)[0]


def test_half_a_character_is_replaced_and_the_line_kept_as_it_was() -> None:
    data = lines([row("u", None, "user", "cut \ud83d here")])
    made = read(data)
    assert made.said == [("user", "cut � here")]
    assert made.customs == ["claude-code.as-it-was"]
    (custom,) = [e.event.body for e in made.entries if isinstance(e.event.body, Custom)]
    assert custom.payload + b"\n" == data
    assert made.noted(NoteKind.CHANGED) == [
        "line 1: half a character stands alone: U+FFFD took its place"
    ]


def test_lines_without_a_time_have_that_of_the_line_before() -> None:
    made = read(bytes_of("claude_code_tools.jsonl"))
    times = [entry.event.time_ns for entry in made.entries]
    assert times[0] == times[1] == times[2] == 1_772_355_601_250_000_000
    assert times[-1] == times[-2]


def test_what_is_too_large_for_an_event_goes_beside_it() -> None:
    huge = {"stdout": "x" * 5_000_000}
    made = read(edited("claude_code_tools.jsonl", lambda r: r[8].update(toolUseResult=huge)))
    parts = [e.event for e in made.entries if e.line == 9 and isinstance(e.event.body, Custom)]
    payload = b"".join(e.body.payload for e in parts if isinstance(e.body, Custom))
    assert json.loads(payload)["claude-code"][0]["toolUseResult"] == huge
    assert [e.extra_json for e in parts] == ['{"part":1,"parts":2}', '{"part":2,"parts":2}']
    assert len(made.said) == 5


def test_a_message_too_large_for_any_event_is_refused_or_left_out() -> None:
    data = lines([row("u", None, "user", "q"), row("v", "u", "user", "x" * 4_000_000)])
    with pytest.raises(UnreadableFileError, match=r"^line 2: an event of 4000\d+ bytes"):
        read(data)
    made = read(data, salvage=True)
    assert made.said == [("user", "q")]
    assert made.customs == ["claude-code.extra", "claude-code.too-large"]


def test_a_file_without_a_message_is_refused() -> None:
    with pytest.raises(UnreadableFileError, match="no message"):
        read(lines([{"type": "summary", "summary": "s", "leafUuid": "u"}]))
