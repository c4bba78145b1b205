"""Anthropic Messages requests, from and to messages and a header.

A user message that holds tool results becomes one tool message per result and a user message per
run of other blocks, tied by a group. A tool_use's input becomes JSON text, and its place is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from foldlog.converters import anthropic_content as contents
from foldlog.converters.converted import Converted
from foldlog.converters.difference import difference, patched
from foldlog.converters.json_text import (
    JsonObject,
    require_object,
    require_objects,
    require_request,
    require_text,
)
from foldlog.converters.request import RequestShape
from foldlog.converters.residue import hints_of, with_hints
from foldlog.core.errors import InvalidFieldError
from foldlog.core.message import Message, Role, TextPart

name: Final = contents.NAME
version: Final = "1"

SHAPE = RequestShape(name, messages="messages", effort=("output_config", "effort"), system="system")
ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}
ROLE_NAMES = {role.value: text for text, role in ROLES.items()} | {Role.TOOL.value: "user"}


def from_request(request: Mapping[str, object]) -> Converted:
    """Return the request in the log's terms.

    Raises InvalidFieldError, naming the path, for what is malformed or what the log cannot hold.
    """
    given = require_request(request)
    originals = require_objects(given.get(SHAPE.messages), SHAPE.messages)
    found = [_messages_of(original, path) for original, path in originals]
    groups = tuple(group for messages, group in found for _ in messages)
    messages = tuple(message for messages, _ in found for message in messages)
    return Converted(messages, groups, SHAPE.header_of(given))


def to_request(converted: Converted) -> dict[str, object]:
    """Return the request. Equal to the original where the messages came from one.

    Of messages logged natively, results that follow one another share one user message, as the
    provider asks for, and system messages join the system prompt unless they repeat it.
    """
    pairs = enumerate(zip(converted.messages, converted.groups, strict=True))
    pieces = [_Piece(m, hints_of(m, name), f"messages[{i}]", group) for i, (m, group) in pairs]
    texts = (text for piece in pieces if piece.is_prompt for text in _prompt_texts(piece))
    prompts = [text for text in texts if text != converted.header.system_prompt]
    runs = _runs([piece for piece in pieces if not piece.is_prompt])
    messages: list[object] = [_provider_message(run) for run in runs]
    return SHAPE.request_of(converted.header, messages, prompts)


def _messages_of(original: JsonObject, path: str) -> tuple[list[Message], str | None]:
    """Return the messages of one provider message, and their group if results are among them."""
    role, content, at = _role_of(original, path), original.get("content"), f"{path}.content"
    group = _group_of(content) if role == Role.USER else None
    found = [contents.said(role, content, at)] if group is None else _split(content, at)
    first = found[0][1]
    framed = {**original, "content": None} if "content" in original else original
    frame = difference({"role": original["role"], "content": None}, framed)
    if frame is not None:
        first["frame"] = frame
    # A system message without hints would join the system prompt; a group that does not say where
    # it begins could run into one of the same name before it.
    if group is not None or role == Role.SYSTEM:
        first["first"] = True
    return [with_hints(message, name, hints) for message, hints in found], group


def _role_of(original: JsonObject, path: str) -> Role:
    text = require_text(original.get("role"), f"{path}.role")
    if text in ROLES:
        return ROLES[text]
    raise InvalidFieldError.of(f"{path}.role", f"{text!r} is no role the log can hold")


def _group_of(content: object) -> str | None:
    """Return a group named after the first tool result, or None if there is none."""
    blocks = content if isinstance(content, list) else []
    results = (b for b in blocks if isinstance(b, dict) and contents.is_result(b))
    return next((f"tool_results:{block.get('tool_use_id')}" for block in results), None)


def _split(content: object, path: str) -> list[contents.Hinted]:
    found: list[contents.Hinted] = []
    blocks = require_objects(content, path)
    for is_result, run in groupby(blocks, key=lambda block: contents.is_result(block[0])):
        if is_result:
            found += [contents.result_of(block, at) for block, at in run]
        else:
            found.append(contents.said_in_blocks(Role.USER, list(run), path))
    return found


@dataclass(frozen=True, slots=True)
class _Piece:
    """A message on its way into a provider message."""

    message: Message
    hints: JsonObject
    path: str
    group: str | None

    @property
    def is_prompt(self) -> bool:
        """Whether it goes into the system prompt: the provider's own system messages stay."""
        return self.message.role == Role.SYSTEM and not self.hints

    @property
    def is_result(self) -> bool:
        return self.message.role == Role.TOOL

    @property
    def value(self) -> object:
        """The content of a provider message that this message is alone."""
        return contents.content_value(self.message, self.hints, self.path)

    def continues(self, before: _Piece) -> bool:
        """Whether both stand in one provider message."""
        roles = {ROLE_NAMES.get(piece.message.role) for piece in (self, before)}
        if roles != {"user"} or "first" in self.hints:
            return False
        if self.group is not None or before.group is not None:
            return self.group == before.group
        return self.is_result and before.is_result

    def blocks(self) -> list[object]:
        """Return the message as blocks among others."""
        if self.is_result:
            return [contents.result_block(self.message, self.hints, self.path)]
        value = self.value
        if isinstance(value, list):
            return value
        return [{"type": "text", "text": value}] if value else []


def _prompt_texts(piece: _Piece) -> list[str]:
    content = piece.message.content
    if not isinstance(content, tuple):
        return [content] if content else []
    texts = [part.text for part in content if isinstance(part, TextPart)]
    if len(texts) == len(content):
        return texts
    raise InvalidFieldError.of(f"{piece.path}.content", "a system prompt holds texts only")


def _runs(pieces: Sequence[_Piece]) -> Iterator[list[_Piece]]:
    """Split the pieces into those of one provider message each."""
    run: list[_Piece] = []
    for piece in pieces:
        if run and not piece.continues(run[-1]):
            yield run
            run = []
        run.append(piece)
    if run:
        yield run


def _provider_message(run: Sequence[_Piece]) -> JsonObject:
    first, role = run[0], run[0].message.role
    if role not in ROLE_NAMES:
        raise InvalidFieldError.of(f"{first.path}.role", f"{role} is no role of this provider")
    is_alone = len(run) == 1 and not first.is_result
    content = first.value if is_alone else [block for piece in run for block in piece.blocks()]
    natural = {"role": ROLE_NAMES[role], "content": content}
    return require_object(patched(natural, first.hints.get("frame")), first.path)
