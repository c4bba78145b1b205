"""Roles: what a caller may do, each all that the one before may."""

from __future__ import annotations

from enum import IntEnum


class Role(IntEnum):
    """A reader reads, a writer writes, and an admin ends and drops things too."""

    READER = 1
    WRITER = 2
    ADMIN = 3

    @property
    def label(self) -> str:
        """The name in texts, settings and tokens."""
        return self.name.lower()

    @classmethod
    def of(cls, name: str) -> Role:
        """Return the role of a name. Raises ValueError that says which there are."""
        for role in cls:
            if role.label == name:
                return role
        raise ValueError(f"a role is one of {', '.join(role.label for role in cls)}, not {name!r}")
