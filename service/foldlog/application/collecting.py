"""CollectAttachments: deleting what no stored event names any more.

References are noted from the feed, a stretch at a time, when a collection needs them: appending
costs nothing for them, and a collection reads what was appended since the last one. What is being
appended meanwhile is safe by its grace: an event's attachments are made young before it is written.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from eventsourcing.persistence import IntegrityError, Tracking

from foldlog.application.attachments import digests_of
from foldlog.application.domain import Session
from foldlog.application.feed import Feed
from foldlog.application.lane import Services
from foldlog.application.rows import Row, RowReader
from foldlog.internal.v1.storage_pb2 import Envelope, StoredFact
from foldlog.persistence.object_table import (
    REFERENCES_NAME,
    Dropped,
    ObjectTable,
    Reference,
    ReferenceChanges,
    Surveyed,
)
from foldlog.persistence.rows import SessionNotification
from foldlog.persistence.store import Store

PAGE = 500
PAGE_BYTES = 8 * 1024 * 1024
ORPHAN_AFTER_S = 3_600.0
UNDER_WAY_S = 60.0  # how long an append takes at most from asking for its attachments to its commit


@dataclass(frozen=True, slots=True)
class Released:
    """What an erased session's rows named and nothing else does.

    Of what is `gone` the row is, by an erasure that a crash ended: a file may be left. Nothing is
    deleted before `wait_ns` have passed.
    """

    found: Sequence[Surveyed]
    gone: frozenset[bytes]
    wait_ns: int


@dataclass(slots=True)
class Collected:
    """What a collection deleted, or would have."""

    collected_count: int = 0
    collected_bytes: int = 0
    examined_count: int = 0


class References:
    """Notes which events name which attachments: every tenant's, at one position in the feed.

    Blocking: called on reader threads.
    """

    def __init__(self, store: Store, reader: RowReader) -> None:
        self._store = store
        self._table = store.objects.table
        self._reader = reader

    def follow(self) -> None:
        """Note the references of what the index has passed.

        Raises EventCorruptError for a damaged row: nothing is deleted that it might name.
        """
        newest = self._store.index.position() or 0
        while self._follow(newest):
            pass

    def _follow(self, newest: int) -> bool:
        """Note those of the next stretch. Returns whether there may be more."""
        followed = self._table.followed()
        rows = self._store.recorder.select_notifications(
            followed, PAGE, newest, inclusive_of_start=False, max_bytes=PAGE_BYTES
        )
        if not rows:
            return False
        changes = changes_of(rows, self._reader)
        try:
            self._table.apply_references(changes, Tracking(REFERENCES_NAME, rows[-1].id))
        except IntegrityError:
            return True  # another collection was faster
        return True


class Collecting:
    """Collects the attachments of a tenant."""

    def __init__(
        self,
        services: Services,
        feed: Feed,
        references: References,
        grace_s: float,
        tenant: str,
    ) -> None:
        self._services = services
        self._feed = feed
        self._references = references
        self._objects = services.store.objects
        self._grace_s = grace_s
        self._tenant = tenant

    @property
    def _table(self) -> ObjectTable:
        return self._objects.table

    async def collect(self, dry_run: bool, grace_s: float = 0) -> Collected:
        """Delete what nothing names and what is older than the grace, the setting's at least."""
        # What is older than 1970 is as old as can be: no database holds any number.
        young_from_ns = max(0, time.time_ns() - int(max(grace_s, self._grace_s) * 1e9))
        run = self._services.readers.run
        await self._feed.settled()
        await run(self._references.follow)
        found, after = Collected(), b""
        while page := await run(self._table.survey, self._tenant, after, young_from_ns, PAGE):
            await run(self._judge, page, young_from_ns, dry_run, found)
            after = page[-1].sha256
        if not dry_run:
            before_s = young_from_ns / 1e9 - ORPHAN_AFTER_S
            await run(self._objects.remove_unnamed, self._tenant, before_s)
        return found

    def release(self, aggregate_id: UUID) -> Released:
        """Let go of what an erased session's rows named. Blocking.

        Writes that are under way are to be waited for, which may have asked for it before: whoever
        asks for it now makes it young again.
        """
        wait_ns = self._wait_ns
        digests = self._table.drop_references(aggregate_id)
        found: list[Surveyed] = []
        gone: set[bytes] = set()
        for start in range(0, len(digests), PAGE):
            part = digests[start : start + PAGE]
            young_from_ns = time.time_ns() - wait_ns
            gone |= set(part) - self._table.sizes(self._tenant, part).keys()
            free = self._table.unnamed(self._tenant, part, young_from_ns)
            found += [each for each in free if not self._is_forked(each.sha256, young_from_ns)]
            self._table.age(self._tenant, [each.sha256 for each in found])
        return Released(found, frozenset(gone), wait_ns)

    @property
    def _wait_ns(self) -> int:
        return int(min(self._grace_s, UNDER_WAY_S) * 1e9)

    def remove(self, released: Released) -> int:
        """Delete what was released and is named by nothing still. Blocking."""
        young_from_ns = time.time_ns() - self._wait_ns
        if released.gone:
            self._objects.remove_unnamed(self._tenant, young_from_ns / 1e9, released.gone)
        return sum(self._delete(each, young_from_ns) for each in released.found)

    def _judge(
        self, page: Sequence[Surveyed], young_from_ns: int, dry_run: bool, found: Collected
    ) -> None:
        for each in page:
            found.examined_count += 1
            if each.is_young or each.is_named or self._is_forked(each.sha256, young_from_ns):
                continue
            if dry_run or self._delete(each, young_from_ns):
                found.collected_count += 1
                found.collected_bytes += each.size_bytes

    def _delete(self, found: Surveyed, young_from_ns: int) -> bool:
        if not self._table.delete(self._tenant, found, young_from_ns):
            return False
        self._objects.remove(found.file)
        self._table.forget_references_to(self._tenant, found.sha256)
        return True

    def _is_forked(self, sha256: bytes, young_from_ns: int) -> bool:
        """Tell whether a dropped row still has its body for a fork, and so names it."""
        recorder = self._services.store.recorder
        named = False
        for key, version in self._table.dropped_references(self._tenant, sha256, young_from_ns):
            (row,) = recorder.select_versions(key, [version])
            if Envelope.FromString(row.state).body:
                named = True
            else:
                self._table.forget_reference(sha256, key, version)
        return named


def changes_of(rows: Sequence[SessionNotification], reader: RowReader) -> ReferenceChanges:
    """Return what a stretch of the feed says of references."""
    changes = ReferenceChanges()
    for stored in rows:
        row = reader.decode(stored, -1).sound()
        if row.is_event:
            changes.added += _added(row, stored.tenant)
        else:
            changes.dropped += _dropped(row.ref.aggregate_id, row)
    return changes


def _added(row: Row, tenant: str) -> Iterator[Reference]:
    envelope = row.envelope
    for digest in dict.fromkeys(digests_of(envelope)):
        key, version = row.ref.aggregate_id, row.ref.version
        yield Reference(tenant, digest, key, version, envelope.seq, envelope.dropped)


def _dropped(aggregate_id: UUID, row: Row) -> Iterator[Dropped]:
    if row.topic == Session.HistoryDropped.TOPIC:
        fact = StoredFact.FromString(row.envelope.body).fact.history_dropped
        for each in fact.dropped:
            yield Dropped(aggregate_id, each.first, each.last)
