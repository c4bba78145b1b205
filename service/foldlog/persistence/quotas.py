"""The tables of quotas and of what tenants use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

from foldlog.persistence.queries import Query
from foldlog.persistence.statements import Statements

COLUMNS = "sessions, bytes, calls_per_s, watches"
SET = (
    f"INSERT INTO foldlog_quotas AS q (tenant, {COLUMNS}) VALUES (%s, %s, %s, %s, %s)"
    " ON CONFLICT (tenant) DO UPDATE SET sessions = excluded.sessions, bytes = excluded.bytes,"
    " calls_per_s = excluded.calls_per_s, watches = excluded.watches"
)
COUNT = (
    "INSERT INTO foldlog_usage AS u (tenant, sessions, bytes) VALUES (%s, %s, %s)"
    " ON CONFLICT (tenant) DO UPDATE SET"
    " sessions = u.sessions + excluded.sessions, bytes = u.bytes + excluded.bytes"
)
# Attachments are counted where they are; a tenant without events may have some.
USED = (
    "SELECT (SELECT sessions FROM foldlog_usage WHERE tenant = %s),"
    " (SELECT bytes FROM foldlog_usage WHERE tenant = %s),"
    " (SELECT sum(size_bytes) FROM foldlog_objects WHERE tenant = %s)"
)


@dataclass(frozen=True, slots=True)
class Quotas:
    """How much a tenant may use; 0 is without limit, None is not said here."""

    sessions: int | None = None
    bytes: int | None = None
    calls_per_s: int | None = None
    watches: int | None = None

    def over(self, defaults: Quotas) -> Quotas:
        """Return these, with the defaults for what they do not say."""
        pairs = zip(astuple(self), astuple(defaults), strict=True)
        return Quotas(*(default if own is None else own for own, default in pairs))


@dataclass(frozen=True, slots=True)
class Usage:
    """What a tenant has: sessions that are not deleted, and stored bytes, attachments included."""

    sessions: int = 0
    bytes: int = 0


class QuotaTable:
    """Reads and writes quotas, and reads what is used."""

    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    def find(self, tenant: str) -> Quotas:
        """Return what a tenant's own quotas say."""
        rows = self._statements.rows(
            (f"SELECT {COLUMNS} FROM foldlog_quotas WHERE tenant = %s", [tenant])
        )
        return Quotas(*rows[0]) if rows else Quotas()

    def set(self, tenant: str, quotas: Quotas) -> None:
        """Write a tenant's own quotas."""
        self._statements.write([(SET, [tenant, *astuple(quotas)])])

    def usage(self, tenant: str) -> Usage:
        """Return what a tenant has, as far as the session index was kept."""
        ((sessions, log, attachments),) = self._statements.rows((USED, [tenant] * 3))
        return Usage(sessions or 0, (log or 0) + int(attachments or 0))

    def tenants(self) -> list[str]:
        """Return the tenants that have something, or quotas of their own."""
        sql = "SELECT tenant FROM foldlog_usage UNION SELECT tenant FROM foldlog_quotas ORDER BY 1"
        return [tenant for (tenant,) in self._statements.rows((sql, []))]


def counted(changes: Iterable[tuple[str, int, int]]) -> Sequence[Query]:
    """Return the statements that count (tenant, sessions, bytes) that came or went."""
    totals: dict[str, tuple[int, int]] = {}
    for tenant, sessions, size_bytes in changes:
        so_far = totals.get(tenant, (0, 0))
        totals[tenant] = so_far[0] + sessions, so_far[1] + size_bytes
    # In one order, so that two who count at once do not wait for each other in a circle.
    return [(COUNT, [tenant, *total]) for tenant, total in sorted(totals.items()) if any(total)]
