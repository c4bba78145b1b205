"""Who calls: the tenant whose sessions a call is about, and what the caller may do there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from foldlog.application.identity import DEFAULT_TENANT
from foldlog.application.scope import WHOLE, Scope
from foldlog.core.errors import UnauthenticatedError
from foldlog.core.role import Role

SCHEME = "bearer"
HEADER = "authorization"

Metadata = Mapping[str, str | bytes]


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody whom the service knows, and what is theirs. `name` says who, in logs and audits."""

    tenant: str
    role: Role = Role.ADMIN
    scope: Scope = WHOLE
    name: str = "anybody"


class Authenticator(Protocol):
    """Tells callers by the metadata of their calls."""

    async def caller_of(self, metadata: Metadata) -> Caller:
        """Return the caller of a call. Raises UnauthenticatedError for one who is not known."""

    @property
    def again_s(self) -> float | None:
        """After how many seconds an open stream's caller is asked for again; None means never."""

    async def close(self) -> None:
        """Let go of what was opened."""


class Anyone:
    """Takes everybody for the one user there is."""

    again_s = None

    async def caller_of(self, metadata: Metadata) -> Caller:
        """Return the default tenant's user."""
        return Caller(DEFAULT_TENANT)

    async def close(self) -> None:
        """Do nothing."""


def bearer_of(metadata: Metadata) -> str:
    """Return the token of a call. Raises UnauthenticatedError if there is none."""
    given = metadata.get(HEADER, "")
    scheme, _, token = given.partition(" ") if isinstance(given, str) else ("", "", "")
    if scheme.lower() != SCHEME or not token:
        raise UnauthenticatedError
    return token.strip()
