"""Who calls: the tenant whose sessions a call is about, and what the caller may do there."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from foldlog.application.identity import DEFAULT_TENANT
from foldlog.application.scope import WHOLE, Scope
from foldlog.core.errors import OverloadedError, StoreUnavailableError, UnauthenticatedError
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
    _user = Caller(DEFAULT_TENANT)

    async def caller_of(self, metadata: Metadata) -> Caller:
        """Return the default tenant's user."""
        return self._user

    async def close(self) -> None:
        """Do nothing."""


class Standing:
    """Whether a call's caller still is who made it: a key may be revoked while a call goes on."""

    def __init__(self, authenticator: Authenticator, metadata: Metadata, caller: Caller) -> None:
        self._authenticator = authenticator
        self._metadata = metadata
        self._caller = caller
        self._at_s = time.monotonic()

    async def look(self) -> None:
        """Raise UnauthenticatedError if the caller is known no more, or as somebody else."""
        self._at_s = time.monotonic()
        try:
            if await self._authenticator.caller_of(self._metadata) != self._caller:
                raise UnauthenticatedError
        except (StoreUnavailableError, OverloadedError):
            pass  # the call itself tells it when it needs the store

    async def require(self) -> None:
        """Look, unless the last look still counts."""
        again_s = self._authenticator.again_s
        if again_s is not None and time.monotonic() - self._at_s >= again_s:
            await self.look()

    async def required(self, items: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Pass a stream on while the caller stands: at its end too, before anything comes of it."""
        async for item in items:
            await self.require()
            yield item
        await self.require()


def metadata_of(pairs: Iterable[tuple[str, str | bytes]]) -> Metadata:
    """Return a call's metadata. A token that is there twice is none.

    What stands before the service may have judged one of them, and we would take the other.
    """
    found: dict[str, str | bytes] = {}
    for name, value in pairs:
        found[name] = "" if name == HEADER and name in found else value
    return found


def bearer_of(metadata: Metadata) -> str:
    """Return the token of a call. Raises UnauthenticatedError if there is none."""
    given = metadata.get(HEADER, "")
    scheme, _, token = given.partition(" ") if isinstance(given, str) else ("", "", "")
    if scheme.lower() != SCHEME or not token:
        raise UnauthenticatedError
    return token.strip()
