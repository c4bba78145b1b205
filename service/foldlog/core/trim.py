"""Trims: a tool result replaced by one that says less, and differs in nothing else."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from foldlog.core.errors import InvalidFieldError
from foldlog.core.message import Message, Role

DIFFERS = "differs from the result that is trimmed"


@dataclass(frozen=True, slots=True)
class Said:
    """A message as the model sees it: with the group of its event."""

    message: Message
    group: str | None = None


def require_trim(trimmed: Said, trim: Said) -> None:
    """Raise InvalidFieldError naming the fields in which a trim differs from what it trims.

    Both are tool results, and only the content may differ; the paths are those of the new event.
    """
    if trimmed.message.role != Role.TOOL:
        raise InvalidFieldError.of("replace.trim", "what is replaced is no tool result")
    one, other = (replace(said.message, content=None) for said in (trimmed, trim))
    names = [f.name for f in fields(Message)]
    differing = [n for n in names if getattr(one, n) != getattr(other, n)]
    wrong = {f"body.message.{name}": DIFFERS for name in differing}
    if trimmed.group != trim.group:
        wrong["body.group"] = DIFFERS
    if wrong:
        raise InvalidFieldError(fields=wrong)
