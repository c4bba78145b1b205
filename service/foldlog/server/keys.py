"""Callers told by API keys."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass
from hmac import compare_digest

from foldlog.application.readers import Readers
from foldlog.application.scope import Scope
from foldlog.core.errors import OverloadedError, UnauthenticatedError
from foldlog.core.key import ApiKey
from foldlog.core.role import Role
from foldlog.persistence.keys import KeyRow, KeyTable
from foldlog.server.callers import Caller, Metadata, bearer_of

KNOWN = 10_000
LOOKS = 500  # at once, for ids that are not known
NO_DIGEST = bytes(32)


@dataclass(frozen=True, slots=True)
class Look:
    """What a look into the table found, and when."""

    row: KeyRow | None
    caller: Caller | None
    at_s: float


class KeyAuthenticator:
    """Knows callers by their keys. A revoked key is let in for less than `within_s` longer.

    Half of that is how long a look into the table counts, and how often open streams are judged.
    """

    def __init__(self, table: KeyTable, within_s: float) -> None:
        self._table = table
        self.again_s = within_s / 2
        # A thread of their own: who tries keys at random hinders no reader.
        self._readers = Readers(1, "keys")
        self._known: OrderedDict[str, Look] = OrderedDict()
        self._looks: dict[str, asyncio.Task[Look]] = {}

    async def caller_of(self, metadata: Metadata) -> Caller:
        """Return the caller whose key a call carries."""
        key = ApiKey.parsed(bearer_of(metadata))
        if key is None:
            raise UnauthenticatedError
        look = self._known.get(key.key_id)
        if look is None or time.monotonic() - look.at_s >= self.again_s:
            look = await self._look(key.key_id)
        digest = look.row.secret_sha256 if look.row else NO_DIGEST
        is_right = compare_digest(key.digest, digest)
        if look.row is None or look.caller is None or not is_right or not _is_valid(look.row):
            raise UnauthenticatedError
        return look.caller

    async def _look(self, key_id: str) -> Look:
        """Look a key up, once for all who wait for it."""
        task = self._looks.get(key_id)
        if task is None:
            # Keys that were let in before are looked up again, however many are tried at random.
            if key_id not in self._known and len(self._looks) >= LOOKS:
                raise OverloadedError(cause="too many unknown keys at once")
            task = asyncio.get_running_loop().create_task(self._read(key_id))
            self._looks[key_id] = task
            task.add_done_callback(lambda _: self._looks.pop(key_id, None))
        return await asyncio.shield(task)

    async def _read(self, key_id: str) -> Look:
        at_s = time.monotonic()
        row = await self._readers.run(self._table.find, key_id)
        look = Look(row, _caller(row) if row else None, at_s)
        if row is not None:  # ids that are none do not push out those that are
            self._known[key_id] = look
            self._known.move_to_end(key_id)
            if len(self._known) > KNOWN:
                self._known.popitem(last=False)
        return look

    async def close(self) -> None:
        """Stop looking."""
        self._readers.close()


def _caller(row: KeyRow) -> Caller:
    role = Role.of(row.role)
    scope = Scope(frozenset(row.labels.items()), sees_audit=role is Role.ADMIN)
    return Caller(row.tenant, role, scope, f"key {row.key_id}")


def _is_valid(row: KeyRow) -> bool:
    is_over = row.expires_ns is not None and row.expires_ns <= time.time_ns()
    return row.revoked_ns is None and not is_over
