"""The audit log: who did what to a tenant's sessions, as events of a session of its own."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from foldlog.application.decisions import Guard
from foldlog.application.incoming import incoming_events
from foldlog.application.tenant import Tenant
from foldlog.core.errors import FoldlogError, SessionExistsError
from foldlog.internal.v1.raw_pb2 import RawNewEvent
from foldlog.persistence.rows import AUDIT_SESSION
from foldlog.settings import Limits
from foldlog.v1.event_pb2 import Custom, EventBody

KIND = "foldlog.audit"
BEGUN, ENDED, OK = "begun", "ended", "ok"
MAX_TEXT = 1_000


@dataclass(frozen=True, slots=True)
class Act:
    """What somebody does. `on` says to what, in the words of the call; `by` who."""

    name: str
    by: str
    on: Mapping[str, object]


class AuditLog:
    """Writes two events for an act: one before it begins, and one before its end is told.

    An act of which only the first is there was cut off: whether it was done, its session says.
    """

    def __init__(self, tenant_of: Callable[[str], Tenant]) -> None:
        self._tenant_of = tenant_of
        self._begun: set[str] = set()

    @asynccontextmanager
    async def of(self, tenant_name: str, act: Act) -> AsyncIterator[None]:
        """Surround an act. It is not done if its beginning cannot be written."""
        tenant, call = self._tenant_of(tenant_name), secrets.token_hex(8)
        await self._ensure_session(tenant)
        await self._note(tenant, act, call, {"phase": BEGUN, "on": _bounded(act.on)})
        try:
            yield
        except FoldlogError as error:
            with suppress(FoldlogError):  # what is told is why the act failed
                await self._note(tenant, act, call, {"phase": ENDED, "outcome": error.reason})
            raise
        await self._note(tenant, act, call, {"phase": ENDED, "outcome": OK})

    async def _ensure_session(self, tenant: Tenant) -> None:
        if tenant.name in self._begun:
            return
        with suppress(SessionExistsError):
            await tenant.writing.create(AUDIT_SESSION, "", {}, "", is_own=True)
        self._begun.add(tenant.name)

    async def _note(self, tenant: Tenant, act: Act, call: str, said: Mapping[str, object]) -> None:
        payload = json.dumps({"act": act.name, "by": act.by, "call": call, **said})
        custom = Custom(kind=KIND, payload=payload.encode(), keys=[act.name])
        event = RawNewEvent(body=EventBody(custom=custom).SerializeToString())
        batch = incoming_events([event], Limits())
        key = tenant.writing.request("")
        write = tenant.writing.append_write(AUDIT_SESSION, key, batch, (), Guard())
        write.is_own = True
        await tenant.writing.write(AUDIT_SESSION, write)


def _bounded(on: Mapping[str, object]) -> Mapping[str, object]:
    """Return what an act is on, without what is no name: a call may be large."""
    if len(json.dumps(on)) <= MAX_TEXT:
        return on
    return {name: value for name, value in on.items() if len(json.dumps(value)) <= MAX_TEXT // 2}
