"""The formats, and how to tell a file's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

from foldlog.importers import claude_code, codex, dsh, nous, openai
from foldlog.importers.errors import UnreadableFileError
from foldlog.importers.export_file import HEADER
from foldlog.importers.json_value import parsed, text_in
from foldlog.importers.log import Importer
from foldlog.importers.source import Source

HEAD_LINES: Final = 50
COMPRESSED: Final = {b"\x28\xb5\x2f\xfd": "zstd", b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip"}


class Format(StrEnum):
    """What a file may be. `auto` is whichever it looks like."""

    AUTO = "auto"
    FOLDLOG = "foldlog"
    OPENAI = "openai"
    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    DSH = "dsh"
    NOUS = "nous"


IMPORTERS: Final[Mapping[Format, Importer]] = {
    Format.OPENAI: openai.read,
    Format.CLAUDE_CODE: claude_code.read,
    Format.CODEX: codex.read,
    Format.DSH: dsh.read,
    Format.NOUS: nous.read,
}
CODEX_KINDS: Final = frozenset(
    {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}
)
CLAUDE_KINDS: Final = frozenset(
    {
        *("summary", "user", "assistant", "system", "progress", "attachment", "mode", "tag"),
        *("file-history-snapshot", "queue-operation", "last-prompt", "custom-title", "ai-title"),
        *("agent-name", "agent-color", "agent-setting", "permission-mode", "worktree-state"),
    }
)
CLAUDE_MEMBERS: Final = frozenset({"uuid", "parentUuid", "sessionId", "leafUuid", "messageId"})
Fields = Mapping[str, Any]


def _is_codex(fields: Fields) -> bool:
    if "payload" in fields:
        return text_in(fields, "type") in CODEX_KINDS
    return "type" not in fields and {"id", "timestamp"} <= fields.keys() and "role" not in fields


# In this order: what tells a format by a single object, a line or the whole document.
SIGNS: Final[Mapping[Format, Callable[[Fields], bool]]] = {
    Format.FOLDLOG: lambda fields: HEADER in fields,
    Format.DSH: lambda fields: fields.get("type") == dsh.SESSION and "createdAt" in fields,
    Format.CODEX: _is_codex,
    Format.CLAUDE_CODE: lambda fields: (
        text_in(fields, "type") in CLAUDE_KINDS and not CLAUDE_MEMBERS.isdisjoint(fields)
    ),
    Format.NOUS: lambda fields: (
        isinstance(fields.get("version"), int) and not {"messages", "events"}.isdisjoint(fields)
    ),
    Format.OPENAI: lambda fields: "role" in fields or openai.is_request(fields),
}


def format_of(source: Source) -> Format:
    """Return the format that a file looks like. Raises UnreadableFileError if it is like none."""
    head = source.head(4096)
    for magic, name in COMPRESSED.items():
        if head.startswith(magic):
            raise UnreadableFileError(f"it is compressed ({name}): decompress it first")
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n\0")
    if not text:
        raise UnreadableFileError("it is empty")
    if text.startswith(b"["):
        return Format.OPENAI
    for fields in _objects(source):
        for name, is_one in SIGNS.items():
            if is_one(fields):
                return name
    raise UnreadableFileError("its format cannot be told: name it with --format")


def _objects(source: Source) -> Iterator[Fields]:
    """Yield the objects of the first lines, else the one that the whole file is."""
    found = False
    for line in source.lines():
        if line.number > HEAD_LINES:
            break
        if (fields := _object(line.data)) is not None:
            found = True
            yield fields
    if not found and (fields := _object(source.whole())) is not None:
        yield fields


def _object(data: bytes) -> Fields | None:
    try:
        value = parsed(data).value
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
