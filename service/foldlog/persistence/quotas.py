"""The tables of quotas and of what tenants use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

from foldlog.persistence.queries import Query
from foldlog.persistence.rows import AUDIT_SESSION
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
# All of one moment: what is counted, and how far along the feed.
STANDING = (
    "SELECT q.sessions, q.bytes, q.calls_per_s, q.watches, u.sessions, u.bytes,"
    " (SELECT notification_id FROM foldlog_tracking WHERE application_name = 'sessions')"
    " FROM (SELECT 1 AS one) o LEFT JOIN foldlog_quotas q ON q.tenant = %s"
    " LEFT JOIN foldlog_usage u ON u.tenant = %s"
)
# Attachments are counted where they are; a tenant without events may have some.
ATTACHED = "SELECT sum(size_bytes) FROM foldlog_objects WHERE tenant = %s"
# First takes the lock under which the index moves on: what is counted here is at its position.
RECOUNT = (
    "UPDATE foldlog_tracking SET notification_id = notification_id"
    " WHERE application_name = 'sessions'",
    "DELETE FROM foldlog_usage",
    "INSERT INTO foldlog_usage (tenant, sessions, bytes)"
    " SELECT tenant, 0, sum(length(state)) FROM foldlog_events WHERE notification_id <="
    " (SELECT coalesce(max(notification_id), 0) FROM foldlog_tracking"
    " WHERE application_name = 'sessions') GROUP BY tenant",
    "UPDATE foldlog_usage SET sessions = (SELECT count(*) FROM foldlog_sessions s"
    " WHERE s.tenant = foldlog_usage.tenant AND NOT s.deleted"
    f" AND s.session_id <> '{AUDIT_SESSION}')",
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
        return self.standing(tenant, Quotas(bytes=1))[1]

    def standing(self, tenant: str, defaults: Quotas) -> tuple[Quotas, Usage, int]:
        """Return a tenant's quotas, its use, and up to where in the feed that is counted.

        Attachments are counted where bytes are limited.
        """
        ((*own, sessions, log, position),) = self._statements.rows((STANDING, [tenant, tenant]))
        limits = Quotas(*own).over(defaults)
        attached = self._attached(tenant) if limits.bytes else 0
        return limits, Usage(sessions or 0, (log or 0) + attached), position or 0

    def _attached(self, tenant: str) -> int:
        ((total,),) = self._statements.rows((ATTACHED, [tenant]))
        return int(total or 0)

    def count(self, tenant: str, sessions: int, size_bytes: int) -> None:
        """Count what came or went beside the index."""
        self._statements.write(counted([(tenant, sessions, size_bytes)]))

    def recount(self) -> None:
        """Count anew what every tenant has."""
        self._statements.write([(sql, []) for sql in RECOUNT])

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
