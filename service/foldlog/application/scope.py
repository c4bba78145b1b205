"""Scopes: which of a tenant's sessions a caller may see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from foldlog.core.errors import PermissionDeniedError


@dataclass(frozen=True, slots=True)
class Scope:
    """The sessions that bear all these labels: without any, every session of the tenant.

    The audit log is there for admins only.
    """

    labels: frozenset[tuple[str, str]] = frozenset()
    sees_audit: bool = True

    @property
    def is_whole(self) -> bool:
        """Whether every session is in it."""
        return not self.labels

    def permits(self, labels: Mapping[str, str]) -> bool:
        """Tell whether a session with these labels is in it."""
        return self.labels <= labels.items()

    def narrowed(self, labels: Mapping[str, str]) -> dict[str, str] | None:
        """Return the labels by which to list what has all of these too; None if nothing can."""
        both = dict(self.labels) | dict(labels)
        return both if self.permits(both) else None

    def require(self, action: str, labels: Mapping[str, str]) -> None:
        """Raise PermissionDeniedError unless a session that gets these labels is in it."""
        if not self.permits(labels):
            needed = ", ".join(f"{key}={value}" for key, value in sorted(self.labels))
            raise PermissionDeniedError(action=action, needs=f"a session with the labels {needed}")


WHOLE = Scope()
