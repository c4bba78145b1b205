"""Trims: a tool result replaced by one that says less, and differs in nothing else."""

from __future__ import annotations

from dataclasses import fields, replace

from foldlog.core.errors import InvalidFieldError
from foldlog.core.message import Message, Role


def require_trim(trimmed: Message, trim: Message) -> None:
    """Raise InvalidFieldError naming the fields in which a trim differs from what it trims.

    Both are tool results, and only the content may differ; the paths are those of the new event.
    """
    if trimmed.role != Role.TOOL:
        raise InvalidFieldError.of("replace.trim", "what is replaced is no tool result")
    bare = replace(trimmed, content=None), replace(trim, content=None)
    names = [f.name for f in fields(Message)]
    wrong = {
        f"body.message.{name}": "differs from the result that is trimmed"
        for name in names
        if getattr(bare[0], name) != getattr(bare[1], name)
    }
    if wrong:
        raise InvalidFieldError(fields=wrong)
