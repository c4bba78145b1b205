"""DeepSeek Harness sessions, and the cases of their ancestor's scanner.

D070 to D077 are those of its JSON Lines. Where ours differs tests/cases/deviations.json says why.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from foldlog.client.bodies import HeaderSnapshot, ToolCallState
from foldlog.core.event import PositionRange, ToolCallPhase
from foldlog.core.header import HeaderReason
from foldlog.core.message import Message, OpaquePart, Role, TextPart, ToolCall
from foldlog.importers.errors import DamagedFileError
from foldlog.importers.formats import Format
from foldlog.importers.report import NoteKind

from tests.importers.reading import bytes_of, edited, lines, read

HEADER = {"type": "session", "version": 0, "id": "s", "createdAt": 1, "delegationDepth": 0}
START = {"type": "turn/start", "seq": 0, "time": 1, "data": {}}
ROW_DATA = {"turn": 1, "step": 1, "index": 0, "dt": [1, -2], "texts": ["a", "b", "c"]}
ROW = {"type": "text-chunks", "seq0": 1, "time0": 5, "data": ROW_DATA}


def event(seq: int, kind: str, data: Any = None, **more: Any) -> dict[str, Any]:
    """Return an event's line."""
    return {"type": kind, "seq": seq, "time": 1, "data": {} if data is None else data, **more}


def said(seq: int, text: str, op: Any = "append") -> dict[str, Any]:
    """Return the line of a user's message."""
    content = [{"type": "text", "text": text}]
    return event(seq, "user/message", {"role": "user", "content": content}, surfaceOp=op)


def replace(start: int, end: int) -> dict[str, Any]:
    """Return a range of live seqs."""
    return {"op": "replace", "start": start, "end": end}


def seqs(data: bytes, *, salvage: bool = False) -> list[int]:
    """Return the seqs of what a file becomes."""
    return [entry.seq for entry in read(data, salvage=salvage).entries]


def test_every_event_keeps_its_seq_and_its_time() -> None:
    made = read(bytes_of("dsh.jsonl"))
    assert [e.seq for e in made.entries] == [0, 1, 2, 3, 4, *range(7, 16)]
    assert made.entries[2].event.time_ns == 1_772_355_602_000_000_000


def test_ranges_of_live_seqs_become_ranges_of_positions() -> None:
    made = read(bytes_of("dsh.jsonl"))
    assert [e.event.replace for e in made.entries if e.event.replace] == [
        *(PositionRange(2, 9), PositionRange(2, 2))
    ]
    assert made.said == [("user", "Thanks")]


def test_messages_say_what_their_blocks_say() -> None:
    bodies = {e.seq: e.event.body for e in read(bytes_of("dsh.jsonl")).entries}
    answer, result = bodies[7], bodies[9]
    assert isinstance(answer, Message)
    assert isinstance(result, Message)
    assert answer.tool_calls == (ToolCall("c1", "bash", '{"cmd": "ls"}'),)
    assert (result.role, result.tool_call_id) == (Role.TOOL, "c1")
    assert result.content == (
        *(TextPart("a b c"), OpaquePart("anthropic:fields", '{"is_error": true}')),
    )
    assert json.loads(answer.metadata_json or "") == {"dsh": {"id": "m2"}}


def test_headers_and_dispatched_calls_are_bookkeeping_of_the_log() -> None:
    bodies = {e.seq: e.event.body for e in read(bytes_of("dsh.jsonl")).entries}
    header, call = bodies[3], bodies[8]
    assert isinstance(header, HeaderSnapshot)
    assert header.reason == HeaderReason.INITIAL
    assert header.header.system_prompt == "Be brief."
    assert header.header.parameters_json == '{"temperature":0.2}'
    assert isinstance(call, ToolCallState)
    assert call.phase == ToolCallPhase.DISPATCHED


def test_members_of_blocks_that_a_message_has_no_word_for_are_in_the_extra() -> None:
    block = {"type": "tool-call", "id": "c", "name": "f", "arguments": "{}", "mark": 1}
    data = {"message": {"role": "assistant", "content": [block]}}
    made = read(lines([HEADER, event(0, "assistant/message", data, surfaceOp="append")]))
    extra = json.loads(made.entries[0].event.extra_json or "")
    assert extra["dsh"]["data"]["message"]["content"] == {"0": {"mark": 1}}


def test_results_of_older_logs_stand_without_a_message_around_them() -> None:
    data = {"callId": "c", "content": [{"type": "text", "text": "r"}], "isError": False}
    made = read(lines([HEADER, event(0, "tool/result", data, surfaceOp="append")]))
    assert made.said == [("tool", "r")]


def test_d071_a_last_line_without_a_newline_is_torn_even_if_it_makes_sense() -> None:
    made = read(lines([HEADER, START, event(1, "x")]).removesuffix(b"\n"))
    assert [e.seq for e in made.entries] == [0]
    assert made.noted(NoteKind.CUT) == [
        "line 3: the file ends in the middle of it: 46 bytes are cut"
    ]


@pytest.mark.parametrize("after", ["y", "turn/end"], ids=["d072", "d073"])
def test_d072_d073_damage_in_the_middle_is_an_error_and_salvage_takes_what_is_before(
    after: str,
) -> None:
    data = lines([HEADER, START]) + b"{bad\n" + lines([event(2, after), event(3, "z")])
    with pytest.raises(DamagedFileError, match=r"^line 3: it is not JSON"):
        read(data)
    made = read(data, salvage=True)
    assert [e.seq for e in made.entries] == [0]
    assert made.noted(NoteKind.DAMAGED)[1] == "line 4: left out with all that follows: 2 more lines"


@pytest.mark.parametrize(
    "rows",
    [
        [event(2, "y")],
        [event(2, "turn/end")],
        [event(2, "y"), event(3, "turn/end")],
        [event(0, "y")],
    ],
    ids=["tail", "turn end", "before a turn end", "behind"],
)
def test_d074_a_gap_between_seqs_is_an_error(rows: list[dict[str, Any]]) -> None:
    data = lines([HEADER, START, *rows])
    with pytest.raises(DamagedFileError, match=r"^line 3: its seq is \d; 1 was to follow"):
        read(data)
    assert seqs(data, salvage=True) == [0]


def test_d076_a_packed_row_is_one_event_that_leaves_the_seqs_of_its_deltas_free() -> None:
    made = read(lines([HEADER, START, ROW, event(4, "turn/end")]))
    assert [e.seq for e in made.entries] == [0, 1, 4]
    assert made.customs == ["dsh.text-chunks"]


def test_d077_a_blank_line_is_damage() -> None:
    data = lines([HEADER, START]) + b"\n" + lines([event(1, "turn/end")])
    with pytest.raises(DamagedFileError, match=r"^line 3: it is not JSON"):
        read(data)


@pytest.mark.parametrize(
    "change",
    [
        {"data": ROW_DATA | {"dt": [1]}},
        {"data": ROW_DATA | {"texts": []}},
        {"data": ROW_DATA | {"texts": [1, 2, 3]}},
        {"data": ROW_DATA | {"dt": ["1", "2"]}},
        {"data": ROW_DATA | {"more": 1}},
        {"seq0": -1},
        {"time": 1},
    ],
    ids=["gaps", "no texts", "numbers", "text gaps", "member", "seq", "envelope"],
)
def test_a_packed_row_that_is_none_is_damage(change: dict[str, Any]) -> None:
    with pytest.raises(DamagedFileError, match=r"^line 3: .*text-chunks"):
        read(lines([HEADER, START, ROW | change]))


@pytest.mark.parametrize(
    ("op", "why"),
    [
        (None, "neither append nor a replace"),
        ({"op": "replace", "start": 0}, "neither append nor a replace"),
        (replace(5, 9), "no event with seq 5 is live"),
        (replace(1, 0), "entry 1 stands after entry 0"),
    ],
    ids=["none", "half", "not live", "reversed"],
)
def test_a_surface_op_that_names_nothing_live_is_damage(op: Any, why: str) -> None:
    data = lines([HEADER, said(0, "a"), said(1, "b"), said(2, "c", op)])
    with pytest.raises(DamagedFileError, match=f"^line 4: .*{why}"):
        read(data)


@pytest.mark.parametrize(
    "header",
    [{"version": 1}, {"id": ""}, {"type": "turn/start", "createdAt": 1}],
    ids=["version", "id", "type"],
)
def test_a_file_begins_with_a_header_of_a_known_version(header: dict[str, Any]) -> None:
    with pytest.raises(DamagedFileError, match=r"^line 1: "):
        read(lines([HEADER | header, START]), Format.DSH)


def test_an_unknown_reason_for_a_header_is_damage() -> None:
    def change(rows: list[dict[str, Any]]) -> None:
        rows[4]["data"]["reason"] = "fallback"

    with pytest.raises(DamagedFileError, match=r"^line 5: 'fallback' is no reason"):
        read(edited("dsh.jsonl", change))


def test_an_image_says_that_its_bytes_are_elsewhere() -> None:
    image = {"type": "image", "attachment": {"attachmentId": "sha256:00"}}
    made = read(lines([HEADER, event(0, "user/message", {"content": [image]}, surfaceOp="append")]))
    assert made.noted(NoteKind.UNREPRESENTED) == [
        "line 2: an image is named here; its bytes are not in the file"
    ]
