"""Who calls: the tenant whose sessions a call is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from foldlog.application.identity import DEFAULT_TENANT


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody whom the service knows, and what is theirs."""

    tenant: str


class Authenticator(Protocol):
    """Tells callers by the metadata of their calls."""

    async def caller_of(self, metadata: Mapping[str, str | bytes]) -> Caller:
        """Return the caller of a call. Raises for one who is not to be served."""


class Anyone:
    """Takes everybody for the one user there is."""

    async def caller_of(self, metadata: Mapping[str, str | bytes]) -> Caller:
        """Return the default tenant's user."""
        return Caller(DEFAULT_TENANT)
