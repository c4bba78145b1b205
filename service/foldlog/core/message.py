"""Messages as values: one shape for every role, presence as None."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Role(IntEnum):
    """Who speaks. The numbers are those of the wire."""

    UNSPECIFIED = 0
    SYSTEM = 1
    USER = 2
    ASSISTANT = 3
    TOOL = 4


@dataclass(frozen=True, slots=True)
class TextPart:
    """A text among the parts of a content."""

    text: str


@dataclass(frozen=True, slots=True)
class AttachmentPart:
    """A reference to stored bytes."""

    sha256: bytes
    media_type: str
    name: str | None = None
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ReasoningPart:
    """A piece of reasoning: readable text, or a provider's own JSON."""

    text: str | None = None
    json: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCallPart:
    """Where a tool call stands among the parts: an index into the message's tool_calls."""

    index: int


@dataclass(frozen=True, slots=True)
class OpaquePart:
    """Anything else a provider knows, as JSON text."""

    kind: str
    json: str


@dataclass(frozen=True, slots=True)
class UnknownPart:
    """A part without a kind, or of a newer release. Never equal to a known one."""


Part = TextPart | AttachmentPart | ReasoningPart | ToolCallPart | OpaquePart | UnknownPart


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call the model asked for. Arguments are the model's own text."""

    id: str | None = None
    name: str | None = None
    arguments: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `content` is None (absent), a text, or a tuple of parts; these three differ."""

    role: int
    content: str | tuple[Part, ...] | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    reasoning: str | None = None
    metadata_json: str | None = None

    @property
    def call_ids(self) -> tuple[str | None, ...]:
        """The ids of its tool calls, in order."""
        return tuple([call.id for call in self.tool_calls])
