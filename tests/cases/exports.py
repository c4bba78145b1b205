"""Reading and damaging an exported file without the code that wrote it."""

from __future__ import annotations

import json
from typing import Any


def event_lines(data: bytes) -> list[int]:
    """Return the indexes of the lines that hold events."""
    lines = data.splitlines()
    return [index for index, line in enumerate(lines) if "seq" in json.loads(line)]


def edited(data: bytes, record: int, set: dict[str, Any]) -> bytes:
    """Return the file with readable fields of the n-th event changed."""
    lines = data.splitlines(keepends=True)
    index = event_lines(data)[record]
    changed = json.loads(lines[index]) | set
    lines[index] = json.dumps(changed).encode() + b"\n"
    return b"".join(lines)


def session_id(data: bytes) -> str:
    """Return the session id that the file states."""
    stated: str = json.loads(data.splitlines()[0])["session_id"]
    return stated


def renamed(data: bytes, new_id: str) -> bytes:
    """Return the file as it would be under another session id."""
    old = json.dumps(session_id(data), ensure_ascii=False).encode()
    return data.replace(old, json.dumps(new_id, ensure_ascii=False).encode(), 1)
