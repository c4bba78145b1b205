"""Requests from an export with nothing but the standard library, written from the documents alone.

Follows docs/reference/request-encoding.md and the definitions of the model, not the service's code.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable, Mapping
from typing import Any

Line = Mapping[str, Any]
SURFACE = ("system_message", "user_message", "assistant_message", "tool_result")
ROLES = {"ROLE_SYSTEM": 1, "ROLE_USER": 2, "ROLE_ASSISTANT": 3, "ROLE_TOOL": 4}


def lines_of(exported: bytes) -> list[Line]:
    """Return the event lines of an export."""
    parsed = [json.loads(line) for line in exported.splitlines()]
    return [line for line in parsed if "seq" in line]


def steps_of(lines: Iterable[Line]) -> dict[int, int]:
    """Return where the request of each step is built, by the step's seq."""
    steps = (line for line in lines if line["type"] == "step_start")
    return {line["seq"]: line.get("request_next_seq", line["seq"] + 1) for line in steps}


def request_at(lines: Iterable[Line], next_seq: int) -> bytes | None:
    """Return the encoding of the request at a place; None if no header is in force there."""
    active = _active([line for line in lines if line["seq"] < next_seq])
    headers = [line for line in active if line["type"] == "request_header"]
    if not headers:
        return None
    header = headers[-1]["event"].get("request_header", {})
    return encoded_header(header) + b"".join(
        encoded_message(line["event"]) for line in _surface(active)
    )


def _active(lines: list[Line]) -> list[Line]:
    states: list[tuple[int, list[Line]]] = []
    now: list[Line] = []
    for line in lines:
        if line["type"] == "rewind":
            to_seq = int(line["event"]["rewind"].get("to_seq", 0))
            now = next((state for seq, state in reversed(states) if seq <= to_seq), [])
        else:
            now = [*now, line]
        states.append((line["seq"], now))
    return now


def _surface(active: list[Line]) -> list[Line]:
    said = [line for line in active if line["type"] in SURFACE]
    live = [line for line in said if not any(_hides(other, line) for other in said)]
    return sorted(live, key=lambda line: (line["position"], line["seq"]))


def _hides(other: Line, line: Line) -> bool:
    range_ = other.get("replace")
    if range_ is None or other["seq"] <= line["seq"]:
        return False
    return bool(range_["start"] <= line["position"] <= range_["stop"])


def _u32(number: int) -> bytes:
    return number.to_bytes(4, "big")


def _framed(data: bytes) -> bytes:
    return _u32(len(data)) + data


def _str(text: str) -> bytes:
    return _framed(text.encode("utf-8"))


def _opt(text: str | None) -> bytes:
    return b"\x00" if text is None else b"\x01" + _str(text)


def encoded_header(header: Line) -> bytes:
    """Return how an encoding begins."""
    tools = header.get("tools_json", [])
    names = ("provider", "model", "parameters_json", "system_prompt")
    before = b"".join(_str(header.get(name, "")) for name in names)
    listed = _u32(len(tools)) + b"".join(map(_str, tools))
    return b"\x01" + before + listed + _str(header.get("reasoning_effort", ""))


def encoded_message(event: Line) -> bytes:
    """Return what the event of a message adds to an encoding."""
    message = event["message"]
    calls = message.get("tool_calls", [])
    pieces = [
        _u32(ROLES[message["role"]]),
        _content(message),
        _u32(len(calls)),
        *(_opt(call.get(name)) for call in calls for name in ("id", "name", "arguments")),
        *(_opt(message.get(n)) for n in ("tool_call_id", "name", "reasoning", "metadata_json")),
        _opt(event.get("group")),
    ]
    return _framed(b"".join(pieces))


def _content(message: Line) -> bytes:
    if "text" in message:
        return b"\x01" + _str(message["text"])
    if "parts" in message:
        parts = message["parts"].get("parts", [])
        return b"\x02" + _u32(len(parts)) + b"".join(map(_part, parts))
    return b"\x00"


def _part(part: Line) -> bytes:
    if "text" in part:
        return b"\x01" + _str(part["text"])
    if "attachment" in part:
        return b"\x02" + _attachment(part["attachment"])
    if "reasoning" in part:
        reasoning = part["reasoning"]
        kind, name = (b"\x03", "text") if "text" in reasoning else (b"\x04", "json")
        return kind + _str(reasoning[name])
    if "tool_call_index" in part:
        return b"\x05" + _u32(part["tool_call_index"])
    return b"\x06" + _str(part["opaque"].get("kind", "")) + _str(part["opaque"].get("json", ""))


def _attachment(ref: Line) -> bytes:
    size = ref.get("size_bytes")
    sized = b"\x00" if size is None else b"\x01" + int(size).to_bytes(8, "big")
    media_type = _str(ref.get("media_type", ""))
    return _framed(b64decode(ref["sha256"])) + media_type + _opt(ref.get("name")) + sized
