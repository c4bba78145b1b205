"""Messages and requests in files: which format it is, and what it says."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foldlog.cli.outcome import CommandError
from foldlog.core.errors import FoldlogError

if TYPE_CHECKING:
    from foldlog.converters.converted import Converted
    from foldlog.core.header import Header
    from foldlog.core.message import Message


class Format(StrEnum):
    """What a file holds."""

    AUTO = "auto"
    FOLDLOG = "foldlog"
    OPENAI_CHAT = "openai-chat"
    OPENAI_RESPONSES = "openai-responses"
    ANTHROPIC = "anthropic"


@dataclass(frozen=True, slots=True)
class Given:
    """What a file says. `header` is None where it holds messages only."""

    format: Format
    messages: tuple[Message, ...]
    groups: tuple[str | None, ...]
    header: Header | None


# What stands in requests of Anthropic only: in tools, in blocks of content, in the request.
ANTHROPIC_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})
ANTHROPIC_KEYS = frozenset({"system", "stop_sequences", "thinking", "anthropic_version"})


def read_messages(source: str, format_: Format = Format.AUTO) -> Given:
    """Read the messages of a file, - for stdin. Raises CommandError that says what is wrong."""
    document = _document(_text(source), source)
    chosen = detected(document) if format_ is Format.AUTO else format_
    try:
        return _given(document, chosen)
    except FoldlogError as error:
        raise CommandError(f"{source} as {chosen}: {error}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CommandError(f"{source} is not {chosen}: {error}") from None


def _text(source: str) -> str:
    try:
        if source == "-":
            return sys.stdin.buffer.read().decode()
        return Path(source).read_text(encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{source} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CommandError(f"{source} is not UTF-8 text") from None


def _document(text: str, source: str) -> Any:
    """Return the JSON document, or the list of those of JSON Lines."""
    from foldlog.converters.json_text import loads

    lines = text.splitlines()
    try:
        if len(lines) > 1 and lines[0].rstrip().endswith("}") and not text.startswith("["):
            return [loads(each, f"{source}, line {n}") for n, each in enumerate(lines, 1) if each]
        return loads(text, source)
    except FoldlogError as error:
        raise CommandError(str(error)) from None


def detected(document: Any) -> Format:
    """Return the format a document has by its looks."""
    if isinstance(document, list):
        return _of_messages(document)
    if not isinstance(document, dict):
        return Format.FOLDLOG
    if "input" in document or "instructions" in document:
        return Format.OPENAI_RESPONSES
    if "messages" not in document:
        return Format.FOLDLOG
    return Format.ANTHROPIC if _is_anthropic(document) else Format.OPENAI_CHAT


def _of_messages(messages: list[Any]) -> Format:
    ours = {"seq", "position", "reasoning", "metadata_json"}
    for message in _objects(messages):
        if ours & message.keys():
            return Format.FOLDLOG
        if _blocks(message) & ANTHROPIC_BLOCKS:
            return Format.ANTHROPIC
    return Format.OPENAI_CHAT


def _is_anthropic(request: Mapping[str, Any]) -> bool:
    return bool(
        ANTHROPIC_KEYS & request.keys()
        or str(request.get("model", "")).startswith("claude")
        or any("input_schema" in tool for tool in _objects(request.get("tools")))
        or any(_blocks(each) & ANTHROPIC_BLOCKS for each in _objects(request.get("messages")))
    )


def _blocks(message: Mapping[str, Any]) -> set[str]:
    return {str(block.get("type")) for block in _objects(message.get("content"))}


def _objects(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON objects of a list; nothing where there is no list."""
    if isinstance(value, list):
        yield from (each for each in value if isinstance(each, dict))


def _given(document: Any, chosen: Format) -> Given:
    if chosen is Format.FOLDLOG:
        return _ours(document)
    whole = isinstance(document, dict)
    key = "input" if chosen is Format.OPENAI_RESPONSES else "messages"
    converted = _converted(document if whole else {key: document}, chosen)
    header = converted.header if whole else None
    return Given(chosen, converted.messages, converted.groups, header)


def _ours(document: Any) -> Given:
    from foldlog.cli.documents import message_from_document

    documents = document if isinstance(document, list) else [document]
    return Given(
        Format.FOLDLOG,
        tuple(map(message_from_document, documents)),
        tuple(each.get("group") for each in documents),
        None,
    )


def _converted(request: Mapping[str, Any], chosen: Format) -> Converted:
    from foldlog.converters import anthropic, openai_chat, openai_responses

    match chosen:
        case Format.ANTHROPIC:
            return anthropic.from_request(request)
        case Format.OPENAI_RESPONSES:
            return openai_responses.from_request(request)
    return openai_chat.from_request(request)
