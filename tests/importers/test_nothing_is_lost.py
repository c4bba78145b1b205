"""What holds for every format: nothing gets lost, wherever the file is cut or damaged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from io import BytesIO

import pytest
from foldlog.importers.errors import DamagedFileError, UnreadableFileError
from foldlog.importers.formats import Format, format_of
from foldlog.importers.importing import Import
from foldlog.importers.report import NoteKind
from foldlog.importers.source import Source
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.importers.reading import LINES_NAMES, NAMES, Made, bytes_of, read

FORMATS = {
    "claude_code": Format.CLAUDE_CODE,
    "codex": Format.CODEX,
    "dsh": Format.DSH,
    "nous": Format.NOUS,
}


def format_by_name(name: str) -> Format:
    """Return what a file here is."""
    return next((f for prefix, f in FORMATS.items() if name.startswith(prefix)), Format.OPENAI)


def texts(value: object) -> Iterator[str]:
    """Yield every text of a JSON value, and every number as its text."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, str):
        yield value
    elif value is not None and not isinstance(value, bool):
        yield json.dumps(value)


def kept(made: Made) -> str:
    """Return all that is sent of a file, with the escapes of nested JSON undone."""
    bodies = b"\n".join(entry.raw.body for entry in made.entries).decode("utf-8", "replace")
    told = f"{bodies}\n{json.dumps(made.metadata)}\n{made.session_id}"
    return told.replace("\\\\", "\\").replace('\\"', '"').replace("\\n", "\n")


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_recognised(name: str) -> None:
    assert format_of(Source(BytesIO(bytes_of(name)))) == format_by_name(name)


# What the log says in words of its own, or says by where it puts an event.
IN_OTHER_WORDS = {
    *("role", "content", "type", "text", "user", "assistant", "tool", "system", "developer"),
    *("message", "messages", "input", "instructions", "payload", "response_item", "timestamp"),
    *("tool_use", "tool_result", "tool_use_id", "tool_calls", "tool_call_id", "function", "id"),
    *("name", "arguments", "input_text", "output_text", "function_call", "function_call_output"),
    *("toolCallId", "tool-call", "tool-result", "isError", "reasoning"),
    *("call_id", "output", "tools", "model", "reasoning_effort", "version", "events", "created_at"),
}


@pytest.mark.parametrize("name", NAMES)
def test_every_text_and_number_of_a_file_is_in_the_log(name: str) -> None:
    data = bytes_of(name)
    documents = data.splitlines() if name in LINES_NAMES else [data]
    made = read(data)
    told = kept(made)
    lost = {
        text
        for document in documents
        for text in texts(json.loads(document))
        if text not in IN_OTHER_WORDS
        and text.replace("\\n", "\n") not in told
        and text.replace('\\"', '"').replace("\\n", "\n") not in told
    }
    times = {text for text in lost if text.startswith("2026-03-01T09:")}
    assert lost - times == set()


@pytest.mark.parametrize("name", NAMES)
def test_times_are_kept(name: str) -> None:
    made = read(bytes_of(name))
    stated = name.startswith(("claude_code", "codex", "dsh", "nous"))
    times = [entry.event.time_ns for entry in made.entries]
    assert all(times) == stated


@pytest.mark.parametrize("name", LINES_NAMES)
def test_cut_at_any_byte_it_gives_the_lines_before_and_says_what_was_cut(name: str) -> None:
    data, format_ = bytes_of(name), format_by_name(name)
    for end in range(len(data)):
        torn = data[:end]
        whole, tail = torn[: torn.rfind(b"\n") + 1], torn[torn.rfind(b"\n") + 1 :]
        is_torn = bool(tail.strip()) and (format_ is Format.DSH or not _is_json(tail))
        made, before = _bodies(torn, format_), _bodies(whole if is_torn else torn, format_)
        assert (made is None) == (before is None)
        if made is not None and before is not None:
            assert made[0] == before[0]
            number = torn.count(b"\n") + 1
            told = f"line {number}: the file ends in the middle of it: {len(tail)} bytes are cut"
            assert made[1] == ([told] if is_torn else [])


@lru_cache(maxsize=8)
def _bodies(data: bytes, format_: Format) -> tuple[list[bytes], list[str]] | None:
    """Return what is made of a file and what is cut of it, or None if it is refused."""
    try:
        made = read(data, format_)
    except UnreadableFileError:
        return None
    return [entry.raw.body for entry in made.entries], made.noted(NoteKind.CUT)


def _is_json(data: bytes) -> bool:
    try:
        return isinstance(json.loads(data), dict)
    except ValueError:
        return False


@pytest.mark.parametrize("name", LINES_NAMES)
def test_a_damaged_line_is_named_and_salvage_says_what_it_leaves_out(name: str) -> None:
    whole = bytes_of(name).splitlines(keepends=True)
    format_ = format_by_name(name)
    for index in range(len(whole)):
        damaged = b"".join([*whole[:index], b'{"type": bad}\n', *whole[index + 1 :]])
        with pytest.raises(DamagedFileError, match=f"^line {index + 1}: "):
            read(damaged, format_)
        try:
            made = read(damaged, format_, salvage=True)
        except UnreadableFileError:
            assert index == 0  # nothing is left where the header is gone
            continue
        assert made.noted(NoteKind.DAMAGED)[0].startswith(f"line {index + 1}: left out")
        lines_taken = {entry.line for entry in made.entries}
        assert index + 1 not in lines_taken
        if format_ is Format.DSH:
            assert not lines_taken or max(lines_taken) <= index


PIECES = [b"", b"\n", b"{", b"}", b'"', b"0", b"null", b"\xff", b"[", b"\\ud83d", b":", b","]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_whatever_stands_in_a_file_it_is_read_or_refused_in_one_line(
    name: str, data: st.DataObject
) -> None:
    given_bytes = bytearray(bytes_of(name))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(given_bytes) - 1))
        given_bytes[at : at + data.draw(st.integers(0, 3))] = data.draw(
            st.sampled_from(
                [b"", b"\n", b"{", b"}", b'"', b"0", b"null", b"\xff", b"[", b"\\ud83d"]
            )
        )
    for salvage in (False, True):
        assert "\n" not in _told(bytes(given_bytes), format_by_name(name), salvage)


def _told(data: bytes, format_: Format, salvage: bool) -> str:
    """Return the id of the session that a file would become, or why it cannot."""
    try:
        return Import(BytesIO(data), format_, salvage=salvage).dry_run().session_id
    except UnreadableFileError as error:
        return str(error)
