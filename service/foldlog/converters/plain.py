"""Lists of OpenAI-style message dictionaries without a request around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from foldlog.converters import openai_chat
from foldlog.converters.json_text import copied, require_objects
from foldlog.core.message import Message


def from_messages(originals: Sequence[object]) -> tuple[Message, ...]:
    """Return the messages in the log's terms. Raises InvalidFieldError as openai_chat does."""
    given = copied(originals, "messages")
    return tuple(openai_chat.message_of(*found) for found in require_objects(given, "messages"))


def to_messages(messages: Iterable[Message]) -> list[dict[str, object]]:
    """Return the messages as dictionaries."""
    return [
        openai_chat.provider_message(message, f"messages[{index}]")
        for index, message in enumerate(messages)
    ]
