"""Codex rollouts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from foldlog.client.bodies import Rewind, TurnEnd, TurnStart
from foldlog.converters import Converted, openai_responses
from foldlog.core.message import Message
from foldlog.importers.report import NoteKind

from tests.importers.reading import bytes_of, edited, lines, read, rows_of

SESSION = {"type": "session_meta", "payload": {"id": "s"}, "timestamp": "2026-03-01T09:00:00Z"}


def item(payload: dict[str, Any]) -> dict[str, Any]:
    """Return a line that holds a response item."""
    return {"timestamp": "2026-03-01T09:00:01Z", "type": "response_item", "payload": payload}


def said(role: str, text: str) -> dict[str, Any]:
    """Return a line that holds a message."""
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text}]
    return item({"type": "message", "role": role, "content": content})


def told(kind: str, **fields: Any) -> dict[str, Any]:
    """Return a line that holds an event."""
    payload = {"type": kind, **fields}
    return {"timestamp": "2026-03-01T09:00:02Z", "type": "event_msg", "payload": payload}


def test_the_items_are_those_of_the_next_request_to_the_letter() -> None:
    rows = rows_of("codex_tools.jsonl")
    items = [r["payload"] for r in rows if r["type"] == "response_item"]
    made = read(bytes_of("codex_tools.jsonl"))
    request = openai_responses.to_request(Converted(tuple(m for _, m in made.surface)))
    assert request["input"] == [each for each in items if each["type"] != "ghost_snapshot"]


def test_what_one_response_put_out_is_one_message() -> None:
    made = read(bytes_of("codex_tools.jsonl"))
    assert [role for role, _ in made.said] == [
        *("system", "user", "user", "assistant", "tool", "assistant")
    ]


def test_a_line_between_the_items_of_a_response_follows_it() -> None:
    reasoning = item({"type": "reasoning", "summary": []})
    call = item({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"})
    made = read(lines([SESSION, reasoning, told("token_count"), call]))
    assert [entry.line for entry in made.entries] == [1, 2, 3]
    assert len(made.said) == 1
    assert made.customs[-1] == "codex.event_msg.token_count"


def test_tasks_are_turns() -> None:
    made = read(bytes_of("codex_tools.jsonl"))
    turns = [e.event.body for e in made.entries if isinstance(e.event.body, TurnStart | TurnEnd)]
    assert turns == [TurnStart(), TurnEnd(reason="completed")]


def test_a_compaction_leaves_the_history_that_it_names() -> None:
    made = read(bytes_of("codex_compacted.jsonl"))
    assert [text for _, text in made.said] == [
        *("Count", "Summary: we are at two.", "And then?", "Three")
    ]


def test_a_compaction_that_names_no_history_leaves_its_summary() -> None:
    made = read(
        edited("codex_compacted.jsonl", lambda r: r[5]["payload"].pop("replacement_history"))
    )
    assert [text for _, text in made.said] == ["We are at two.", "And then?", "Three"]
    assert made.noted(NoteKind.ASSUMED) == [
        "line 6: what it leaves beside the summary is not in the file: the summary alone counts"
    ]


def test_a_compaction_can_leave_nothing() -> None:
    made = read(
        edited("codex_compacted.jsonl", lambda r: r[5]["payload"].update(replacement_history=[]))
    )
    assert [text for _, text in made.said] == ["And then?", "Three"]


def test_a_rollback_undoes_turns() -> None:
    rows = [SESSION]
    for number in (1, 2, 3):
        rows += [told("task_started"), said("user", "<environment_context>here")]
        rows += [said("user", f"q{number}"), said("assistant", f"a{number}")]
        rows += [told("task_complete")]
    made = read(lines([*rows, told("thread_rolled_back", num_turns=2), said("user", "other")]))
    assert [text for _, text in made.said] == ["<environment_context>here", "q1", "a1", "other"]
    kept = [entry.event.body for entry in made.entries]
    start = [i for i, body in enumerate(kept) if isinstance(body, TurnStart)][1]
    assert Rewind(made.entries[start].seq - 1) in kept


@pytest.mark.parametrize(("count", "left"), [(5, []), (0, ["q"]), ("x", ["q"])])
def test_a_rollback_of_turns_that_are_not_known_is_said(count: Any, left: list[str]) -> None:
    made = read(lines([SESSION, said("user", "q"), told("thread_rolled_back", num_turns=count)]))
    assert [text for _, text in made.said] == left
    assert made.noted(NoteKind.ASSUMED) + made.noted(NoteKind.UNREPRESENTED)


def test_rollouts_of_old_have_no_envelope() -> None:
    made = read(
        lines(
            [
                {"id": "old", "timestamp": "2026-03-01T09:00:00Z", "instructions": None},
                {"record_type": "state"},
                said("user", "q")["payload"],
                said("assistant", "a")["payload"],
            ]
        )
    )
    assert made.session_id == "old"
    assert made.said == [("user", "q"), ("assistant", "a")]
    assert made.customs == ["codex.session_meta", "codex.state"]


def test_an_item_that_the_log_cannot_hold_is_kept_and_said() -> None:
    made = read(lines([SESSION, item({"type": "function_call_output", "output": "of what?"})]))
    assert made.said == []
    assert made.customs == ["codex.session_meta", "codex.response_item"]
    assert made.noted(NoteKind.UNREPRESENTED)[0].startswith("line 2: response_item: payload")


def test_each_item_keeps_its_time() -> None:
    made = read(bytes_of("codex_tools.jsonl"))
    (answer,) = [e.event for e in made.entries if e.line == 9 and isinstance(e.event.body, Message)]
    times = [each["timestamp"] for each in json.loads(answer.extra_json or "")["codex"]]
    assert times == ["2026-03-01T09:00:09.250Z", "2026-03-01T09:00:10.250Z"]
