"""Message lists in OpenAI's style: a JSON list, a whole request, or JSON Lines of messages.

A request may also be one for the Responses API or for Anthropic Messages; its header becomes a
request_header. With salvage, JSON Lines are taken around the damage, and of a torn list the whole
elements. What no converter knows is kept to the letter, as a custom event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Final

from foldlog.client.bodies import HeaderSnapshot
from foldlog.client.new_events import NewEvent, events_of
from foldlog.converters import Converted, anthropic, openai_chat, openai_responses, plain
from foldlog.core.errors import InvalidFieldError
from foldlog.core.header import Header, HeaderReason
from foldlog.importers.errors import DamagedFileError, UnreadableFileError
from foldlog.importers.json_value import dumps, elements, parsed, text_in
from foldlog.importers.log import Entry, Imported, Log, Options
from foldlog.importers.report import NoteKind, Report
from foldlog.importers.source import Line, Row, Salvage, Source, note_alterations
from foldlog.importers.times import ns_of_any

NAME: Final = "openai"
TIME_FIELDS: Final = ("created_at", "timestamp", "created")
LINES_LOOKED_AT: Final = 50
ANTHROPIC_BLOCKS: Final = frozenset({"tool_use", "tool_result", "thinking"})


def read(source: Source, report: Report, options: Options) -> Imported:
    """Read a file of messages. They have no session id; times are kept where a message has one."""
    log = Log(NAME, report, options.salvage)
    if source.head(1024).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"[":
        return Imported(_list(source, log))
    if _has_lines(Source(source.file)):
        return Imported(_lines(source, log))
    return Imported(_document(source, log))


def _has_lines(source: Source) -> bool:
    """Return whether a file is of JSON Lines, and not one document, which may be on one line."""
    starts = islice((line.data for line in source.lines() if line.data.strip()), LINES_LOOKED_AT)
    first = next(starts, b"")
    if (value := _object(first)) is not None:
        return not is_request(value) or any(True for _ in starts)
    has_objects = any(_object(data) is not None for data in starts)
    return has_objects and _object(source.whole()) is None


def _object(data: bytes) -> dict[str, object] | None:
    try:
        value = parsed(data).value
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def is_request(value: Mapping[str, object]) -> bool:
    """Return whether an object is a request around messages."""
    return "role" not in value and ("messages" in value or "input" in value)


def _lines(source: Source, log: Log) -> Iterator[Entry]:
    salvage = Salvage.AROUND if log.salvage else Salvage.NOTHING
    for row in source.rows(log.report, salvage):
        if is_request(row.fields):
            raise DamagedFileError(
                row.number, "it is a conversation of its own: import each from a file of its own"
            )
        yield from chain(_message(row, log), log.beside(row))


def _list(source: Source, log: Log) -> Iterator[Entry]:
    """Read a list. Positions stand for line numbers: it may well be on one line."""
    data = source.whole()
    log.report.lines = data.count(b"\n") + 1
    try:
        found = parsed(data)
    except ValueError as error:
        yield from _torn_list(data, str(error), log)
        return
    assert isinstance(found.value, list)
    note_alterations(found, 1, log.report)
    yield from _messages(found.value, log)
    if found.alterations:
        yield from log.custom("as-it-was", data, 1)


def _torn_list(data: bytes, why: str, log: Log) -> Iterator[Entry]:
    text = data.decode("utf-8", "replace").lstrip("\ufeff")
    found, end, _ = elements(text, text.index("[") + 1)
    line = text.count("\n", 0, end) + 1
    if not log.salvage:
        told = f"it is not JSON after {len(found)} whole elements: {why}; --salvage takes those"
        raise DamagedFileError(line, told)
    left = len(text[end:].encode())
    log.report.note(NoteKind.DAMAGED, line, f"left out with all that follows: {left} bytes")
    yield from _messages(found, log)


def _messages(found: Sequence[object], log: Log) -> Iterator[Entry]:
    for number, value in enumerate(found, 1):
        if not isinstance(value, dict):
            raise DamagedFileError(number, f"element {number} of the list is no message")
        line = Line(number, 0, dumps(value).encode("utf-8", "replace"), True)
        yield from _message(Row(line, value), log)


def _message(row: Row, log: Log) -> Iterator[Entry]:
    role = row.fields.get("role")
    log.report.read[role if isinstance(role, str) else "no role"] += 1
    try:
        (message,) = plain.from_messages([row.fields])
    except InvalidFieldError as error:
        return log.raw(row, str(error).replace("messages[0]", "it"), "message")
    event = NewEvent(message, _time_of(row.fields))
    return log.put(event, row.number)


def _time_of(fields: Mapping[str, object]) -> int | None:
    return next((time for name in TIME_FIELDS if (time := ns_of_any(fields.get(name)))), None)


def _document(source: Source, log: Log) -> Iterator[Entry]:
    data = source.whole()
    log.report.lines = data.count(b"\n") + 1
    try:
        found = parsed(data)
    except ValueError as error:
        raise UnreadableFileError(f"it is not JSON: {error}") from None
    if not isinstance(found.value, dict) or not is_request(found.value):
        raise UnreadableFileError("it is neither a list of messages nor a request that has one")
    note_alterations(found, 1, log.report)
    return _request(found.value, data, bool(found.alterations), log)


def _request(
    request: dict[str, object], data: bytes, is_altered: bool, log: Log
) -> Iterator[Entry]:
    name, from_request = _converter(request)
    log.report.read[f"{name} request"] += 1
    try:
        converted = from_request(request)
    except InvalidFieldError as error:
        raise UnreadableFileError(f"it is no {name} request: {error}") from None
    if converted.header != Header(provider=name):
        yield from log.put(HeaderSnapshot(converted.header, HeaderReason.INITIAL), 1)
    for number, event in enumerate(events_of(converted), 1):
        yield from log.put(replace(event, time_ns=_message_time(request, number, name)), number)
    if is_altered:
        yield from log.custom("as-it-was", data, 1)


def _message_time(request: Mapping[str, object], number: int, name: str) -> int | None:
    messages = request.get("messages")
    if name != openai_chat.name or not isinstance(messages, list):
        return None
    return _time_of(messages[number - 1])


def _converter(
    request: Mapping[str, object],
) -> tuple[str, Callable[[Mapping[str, object]], Converted]]:
    if "messages" not in request:
        return openai_responses.name, openai_responses.from_request
    if "system" in request or any(map(_is_anthropic, _blocks(request["messages"]))):
        return anthropic.name, anthropic.from_request
    return openai_chat.name, openai_chat.from_request


def _blocks(messages: object) -> Iterator[object]:
    for message in messages if isinstance(messages, list) else []:
        content = message.get("content") if isinstance(message, dict) else None
        yield from content if isinstance(content, list) else ()


def _is_anthropic(block: object) -> bool:
    return isinstance(block, dict) and text_in(block, "type") in ANTHROPIC_BLOCKS
