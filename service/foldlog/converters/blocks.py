"""Content blocks of a provider and the parts of a message, both ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from foldlog.converters.images import Image, image_of
from foldlog.converters.json_text import (
    JsonObject,
    dumps,
    loads,
    loads_object,
    require_objects,
    require_text,
)
from foldlog.core.errors import InvalidFieldError
from foldlog.core.message import (
    AttachmentPart,
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolCallPart,
    UnknownPart,
)

Content = str | tuple[Part, ...] | None

# What the provider acts on and the model never sees; it moves from request to request.
UNSEEN = frozenset({"cache_control"})
# The fields beside the content of a tool result that is an error.
ERROR_MARK = '{"is_error": true}'


@dataclass(frozen=True, slots=True)
class Dialect:
    """A provider's words for content blocks.

    `prefix` begins the kinds of its opaque parts: "prefix.type" is a content block, "prefix:name"
    stands outside of the content. Blocks of `text_types` become texts, those of `reasoning_types`
    reasoning. `image` says an image in the provider's words.
    """

    prefix: str
    text_types: frozenset[str]
    image: Callable[[Image], JsonObject]
    reasoning_types: frozenset[str] = field(default_factory=frozenset)

    def part_of(self, block: JsonObject, path: str) -> Part:
        """Return the part that holds all the model sees of a block."""
        kind = require_text(block.get("type"), f"{path}.type")
        if kind in self.text_types and is_plain_text(block):
            return TextPart(str(block["text"]))
        seen = dumps({key: value for key, value in block.items() if key not in UNSEEN})
        if kind in self.reasoning_types:
            return ReasoningPart(json=seen)
        return OpaquePart(f"{self.prefix}.{kind}", seen)

    def content_of(self, value: object, path: str) -> Content:
        """Return the content a text, a list of blocks or null becomes."""
        if value is None or isinstance(value, str):
            return value
        return tuple(self.part_of(block, at) for block, at in require_objects(value, path))

    def blocks(self, part: Part, text_type: str, path: str) -> list[object]:
        """Return the part as a block; as none if it says what this provider cannot be told.

        That is reasoning of another provider, and the mark that a tool result is an error.
        """
        match part:
            case TextPart(text):
                return [{"type": text_type, "text": text}]
            case ReasoningPart(json=str(text)):
                block = loads(text, path)
                return [block] if self._is_reasoning(block) else []
            case ReasoningPart():
                return []
            case OpaquePart(kind, text) if kind.startswith((f"{self.prefix}.", f"{self.prefix}:")):
                return [loads(text, path)]
            case OpaquePart(_, text) if text == ERROR_MARK:
                return []
            case OpaquePart() if image := image_of(part):
                return [self.image(image)]
        raise InvalidFieldError.of(path, f"{_described(part)} has no form in this request")

    def _is_reasoning(self, block: object) -> bool:
        kind = block.get("type") if isinstance(block, dict) else None
        return isinstance(kind, str) and kind in self.reasoning_types

    def with_fields(self, content: Content, fields: JsonObject) -> Content:
        """Return the content with what the model sees beside it as a last part."""
        if not fields:
            return content
        part = OpaquePart(f"{self.prefix}:fields", dumps(fields))
        parts = (TextPart(content),) if isinstance(content, str) else content or ()
        return (*parts, part)

    def without_fields(
        self, content: Content, is_text: bool, path: str
    ) -> tuple[Content, JsonObject]:
        """Return the content and the fields beside it. `is_text` says that it was a text."""
        if not isinstance(content, tuple) or not content:
            return content, {}
        last = content[-1]
        if not (isinstance(last, OpaquePart) and last.kind == f"{self.prefix}:fields"):
            return content, {}
        rest = content[:-1]
        fields = loads_object(last.json, f"{path}[{len(rest)}]")
        if is_text and len(rest) == 1 and isinstance(rest[0], TextPart):
            return rest[0].text, fields
        return rest or None, fields


def seen_fields(original: JsonObject, names: Sequence[str]) -> JsonObject:
    """Return the members of these names that say something: not null, false or empty."""
    return {name: original[name] for name in names if original.get(name)}


def call_at(message: Message, part: ToolCallPart, path: str) -> ToolCall:
    """Return the call a part stands for, raising InvalidFieldError if there is none."""
    if part.index < len(message.tool_calls):
        return message.tool_calls[part.index]
    raise InvalidFieldError.of(path, f"names tool call {part.index} of {len(message.tool_calls)}")


def unplaced_calls(message: Message) -> list[int]:
    """Return the indexes of the tool calls that no part places: they stand after the content."""
    parts = message.content if isinstance(message.content, tuple) else ()
    placed = {part.index for part in parts if isinstance(part, ToolCallPart)}
    return [index for index in range(len(message.tool_calls)) if index not in placed]


def is_plain_text(block: JsonObject) -> bool:
    """Return whether the model sees nothing of a block but its text."""
    rest = (value for key, value in block.items() if key not in {"type", "text", *UNSEEN})
    return isinstance(block.get("text"), str) and not any(rest)


def _described(part: Part) -> str:
    match part:
        case OpaquePart(kind):
            return kind
        case AttachmentPart():
            return "an attachment, whose bytes are not at hand,"
        case UnknownPart():
            return "a part of an unknown kind"
    return type(part).__name__
