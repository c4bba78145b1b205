"""A tenant's calls, in groups, on what all tenants share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from foldlog.application.attachments import Attachments
from foldlog.application.bodies import Bodies, KeptBodies
from foldlog.application.chains import Chains
from foldlog.application.checking import Checking
from foldlog.application.collecting import Collecting, References
from foldlog.application.committer import Committer
from foldlog.application.domain import Session
from foldlog.application.erasing import Erasing
from foldlog.application.explaining import Explaining
from foldlog.application.feed import Feed
from foldlog.application.headers import HeaderCache, Headers, KeptHeaders
from foldlog.application.heads import Heads, Signer
from foldlog.application.history import History
from foldlog.application.lane import Lane, Services
from foldlog.application.lanes import LanePool, Lanes
from foldlog.application.ledger import CallLedger
from foldlog.application.messages import Digests
from foldlog.application.meter import Meter
from foldlog.application.ranges import Ranges
from foldlog.application.readers import Readers, Workers
from foldlog.application.reading import Reading
from foldlog.application.records import Records
from foldlog.application.recovery import Recovery
from foldlog.application.requests import Requests
from foldlog.application.retention import Retention
from foldlog.application.rows import KeptByRows, RowReader
from foldlog.application.scope import WHOLE, Scope
from foldlog.application.steps import Steps
from foldlog.application.transfer import Transfer
from foldlog.application.verifying import Verifying
from foldlog.application.watching import Watching
from foldlog.application.writing import Writing
from foldlog.compression import Packer
from foldlog.core.errors import InvalidFieldError
from foldlog.persistence.index import IndexPage, IndexQuery, PageTokenError
from foldlog.persistence.rows import AUDIT_SESSION
from foldlog.persistence.store import Store
from foldlog.settings import Settings


@dataclass(frozen=True, slots=True)
class Shared:
    """What the tenants of a process share: threads, the committer, lanes, the feed, and caches.

    A key of a cache names its tenant, as an aggregate id does.
    """

    store: Store
    settings: Settings
    readers: Readers
    object_threads: Readers
    workers: Workers
    committer: Committer
    lanes: LanePool
    feed: Feed
    on_stored: Callable[[Lane, Sequence[Session.Event], int], None]
    references: References
    by_rows: KeptByRows
    bodies: KeptBodies
    digests: Digests
    headers: KeptHeaders
    signer: Signer | None
    meter_of: Callable[[str], Meter]
    pack: Packer


class Tenant:
    """The calls on one tenant's sessions, as far as they are in a scope."""

    def __init__(self, name: str, shared: Shared, scope: Scope = WHOLE) -> None:
        self.name = name
        self.scope = scope
        self.settings = shared.settings
        self.lanes = Lanes(shared.lanes, scope, shared.settings.limits.session_id_bytes)
        self._shared = shared
        store = shared.store.for_tenant(name)
        reader = RowReader(store, name, shared.by_rows)
        self.meter = shared.meter_of(name)
        self.objects = Attachments(
            store.objects, shared.readers, shared.object_threads, shared.settings, self.meter, name
        )
        self.services = Services(
            store,
            History(store, reader),
            shared.readers,
            shared.workers,
            shared.committer,
            shared.on_stored,
            shared.lanes.note_fold_wanted,
            self.objects,
            self.meter,
            shared.bodies,
            shared.pack,
        )
        self._add_sessions(reader)
        self._add_requests()

    def _add_sessions(self, reader: RowReader) -> None:
        """Add the calls on sessions and their events."""
        shared, services, lanes, name = self._shared, self.services, self.lanes, self.name
        limits, feed = self.settings.limits, shared.feed
        self._bodies = Bodies(reader, shared.bodies)
        self.reading = Reading(services, lanes, self._bodies, limits, name)
        self.chains = Chains(services, lanes, feed, limits.session_id_bytes, name)
        self.heads = Heads(services, lanes, shared.signer, limits.session_id_bytes, name)
        self.writing = Writing(services, lanes, limits, name, self.scope)
        self.checking = Checking(
            self.reading, shared.workers, shared.digests, self.settings.check_mode
        )
        self.retention = Retention(services, lanes, feed, self._bodies, self.writing, name)
        self.watching = Watching(
            services, lanes, feed, self.reading, self.settings.watch_buffer, name
        )
        self.collecting = Collecting(
            services, feed, shared.references, self.settings.object_grace_s, name
        )
        self.erasing = Erasing(
            services,
            lanes,
            feed,
            self._bodies,
            self.writing,
            self.collecting,
            shared.references,
            reader,
            name,
        )
        self.transfer = Transfer(services, lanes, self.reading, self.writing, limits, name)
        self.recovery = Recovery(services, lanes, self.reading, self.writing, limits, name)
        self.ledger = CallLedger(
            services.store.index, feed, shared.readers, limits, name, self.scope
        )
        self.ranges = Ranges(self.reading, shared.readers)

    def _add_requests(self) -> None:
        """Add the calls on headers, steps and requests."""
        services, lanes, name = self.services, self.lanes, self.name
        reading, writing, limits = self.reading, self.writing, self.settings.limits
        header_cache = HeaderCache(reading, self._shared.headers)
        self.headers = Headers(header_cache, writing, self._shared.workers, limits)
        self.requests = Requests(services, lanes, reading, header_cache, name)
        self.steps = Steps(
            services, reading, writing, self._bodies, self.headers, self.requests, limits
        )
        self.records = Records(reading, writing, self.requests, limits)
        self.explaining = Explaining(services, reading)
        self.verifying = Verifying(services, reading)

    async def list_sessions(self, query: IndexQuery) -> IndexPage:
        """Return a page of the tenant's index, once it has passed this process's own writes."""
        await self._shared.feed.indexed()
        labels = self.scope.narrowed(query.labels)
        if labels is None:
            return IndexPage(())
        without = "" if self.scope.sees_audit else AUDIT_SESSION
        query = replace(query, tenant=self.name, labels=labels, without_session_id=without)
        try:
            return await self._shared.readers.run(self.services.store.index.list_sessions, query)
        except PageTokenError as error:
            raise InvalidFieldError.of("page_token", str(error)) from None
