"""A provider request as the log stores it: messages, what groups them, and the header."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol, Self

from foldlog.core.errors import InvalidFieldError
from foldlog.core.header import Header
from foldlog.core.message import Message


class Folded(Protocol):
    """A message as a read of the log gives it, with its group."""

    @property
    def message(self) -> Message: ...

    @property
    def group(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Converted:
    """A request in the log's terms. Messages of one provider message stand under one group.

    `groups` may be left empty: then no message belongs to a group.
    """

    messages: tuple[Message, ...]
    groups: tuple[str | None, ...] = ()
    header: Header = field(default_factory=Header)

    def __post_init__(self) -> None:
        if not self.groups:
            object.__setattr__(self, "groups", (None,) * len(self.messages))
        if len(self.groups) != len(self.messages):
            raise InvalidFieldError.of(
                "groups", f"{len(self.groups)} groups for {len(self.messages)} messages"
            )

    @classmethod
    def of(cls, folded: Iterable[Folded], header: Header | None = None) -> Self:
        """Return the value of messages read from a session, such as `session.messages()`."""
        pairs = [(each.message, each.group) for each in folded]
        messages, groups = tuple(m for m, _ in pairs), tuple(group for _, group in pairs)
        return cls(messages, groups, header or Header())
