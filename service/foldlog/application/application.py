"""The service as an `eventsourcing` application: what its tenants share."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, ClassVar
from uuid import UUID

from eventsourcing.application import Application
from eventsourcing.persistence import InfrastructureFactory, JSONTranscoder, Mapper, Transcoder
from eventsourcing.utils import Environment

from foldlog import observability
from foldlog.application.attachments import THREADS
from foldlog.application.bodies import kept_bodies
from foldlog.application.collecting import References
from foldlog.application.committer import Committer
from foldlog.application.domain import Session
from foldlog.application.feed import Feed
from foldlog.application.headers import kept_headers
from foldlog.application.heads import Signer
from foldlog.application.identity import DEFAULT_TENANT
from foldlog.application.lane import Lane
from foldlog.application.lanes import LanePool
from foldlog.application.mapper import SessionMapper
from foldlog.application.memory import give_memory_back
from foldlog.application.messages import Digests
from foldlog.application.meter import Meter
from foldlog.application.readers import HEAVY_BYTES, Readers, Workers
from foldlog.application.rows import KeptByRows, RowReader
from foldlog.application.scope import WHOLE, Scope
from foldlog.application.tenant import Shared, Tenant
from foldlog.compression import packer_of
from foldlog.core.errors import FoldlogError
from foldlog.persistence.factory import SessionFactory
from foldlog.persistence.quotas import Quotas
from foldlog.persistence.store import Store
from foldlog.settings import Settings

TENANTS = 1_000  # whose calls are kept ready
READER_WAIT_S = 5.0
ERASURES = 1_000  # that a start goes on with


class SessionApplication(Application[UUID]):
    """Sessions on one store. Its calls are coroutines of one event loop, a tenant's in `tenant`.

    The package's aggregate cache and automatic snapshots are not used: lanes and checkpoints are in
    their place.
    """

    name = "foldlog"
    env: ClassVar[dict[str, str]] = {"AGGREGATE_CACHE_MAXSIZE": ""}

    def __init__(self, store: Store, settings: Settings, signer: Signer | None = None) -> None:
        pack = packer_of(settings.compression)
        self.store = store
        self.settings = settings
        super().__init__()
        self._readers = Readers(settings.reader_threads, "reader", READER_WAIT_S)
        self._object_threads = Readers(THREADS, "objects")
        self._workers = Workers()
        # On SQLite a restore keeps the other writes waiting for as long as it takes.
        commit_wait_s = None if store.dialect == "sqlite" else settings.commit_timeout_s
        self._committer = Committer(store, commit_wait_s)
        self._forgetting: asyncio.Task[None] | None = None
        self._meters: dict[str, Meter] = {}
        self._tenants: OrderedDict[tuple[str, Scope], Tenant] = OrderedDict()
        self.lanes = LanePool(
            lambda tenant: self.tenant(tenant).services, settings.fold_cache_bytes
        )
        self.feed = Feed(store, self.lanes, settings.feed_poll_s)
        by_rows = KeptByRows()
        self._shared = Shared(
            store,
            settings,
            self._readers,
            self._object_threads,
            self._workers,
            self._committer,
            self.lanes,
            self.feed,
            self._on_stored,
            References(store, RowReader(store, DEFAULT_TENANT, by_rows)),
            by_rows,
            kept_bodies(settings.body_cache_bytes),
            Digests(),
            kept_headers(),
            signer,
            self._meter_of,
            pack,
        )

    def tenant(self, name: str = DEFAULT_TENANT, scope: Scope = WHOLE) -> Tenant:
        """Return the calls of a tenant, on the sessions of a scope."""
        key = (name, scope)
        tenant = self._tenants.get(key)
        if tenant is None:
            tenant = self._tenants[key] = Tenant(name, self._shared, scope)
            if len(self._tenants) > TENANTS:
                self._tenants.popitem(last=False)
        self._tenants.move_to_end(key)
        return tenant

    def _meter_of(self, tenant: str) -> Meter:
        """Return the meter of a tenant, which its scopes share."""
        meter = self._meters.get(tenant)
        if meter is None:
            settings = self.settings
            defaults = Quotas(
                settings.quota_sessions,
                settings.quota_bytes,
                settings.quota_calls_per_s,
                settings.quota_watches,
            )
            is_on = settings.auth != "none" or defaults != Quotas(0, 0, 0, 0)
            meter = self._meters[tenant] = Meter(
                tenant, self.store.quotas, defaults, self._readers, is_on, self.feed.indexed
            )
        return meter

    def construct_factory(self, env: Environment) -> InfrastructureFactory[Any]:
        """Return the factory of the store that was given."""
        return SessionFactory(env, self.store)

    def construct_transcoder(self) -> Transcoder:
        """Return a transcoder for the package's sake: our mapper needs none."""
        return JSONTranscoder()

    def construct_mapper(self) -> Mapper[UUID]:
        """Return the mapper of envelopes."""
        return SessionMapper()

    async def start(self) -> None:
        """Begin to follow the feed."""
        await self.feed.start()
        self.lanes.in_background(self._resume_erasures())
        self._forgetting = asyncio.create_task(self._forget_unused())

    async def _forget_unused(self) -> None:
        """Forget now and then what is cached and was not asked for."""
        while True:
            await asyncio.sleep(self.settings.cache_idle_s)
            shared = self._shared
            caches = self.lanes, shared.bodies, shared.by_rows.origins, shared.by_rows.texts
            if sum(each.forget_unused() for each in caches):
                await self._workers.run(HEAVY_BYTES, give_memory_back)

    async def _resume_erasures(self) -> None:
        """Go on with the erasures that a crash interrupted."""
        try:
            await self.feed.settled()
            pending = await self._readers.run(self.store.erasures.pending, ERASURES)
            for each in pending:
                await self.tenant(each.tenant).erasing.resume(each.session_id)
        except FoldlogError as error:
            observability.log("erasure.interrupted", level="warning", error=error)

    async def stop(self) -> None:
        """Let what is under way end, then close everything but the store."""
        if self._forgetting is not None:
            self._forgetting.cancel()
        await self._committer.idle()
        await self.lanes.close()
        await self.feed.close()
        await self._committer.close()
        self._object_threads.close()
        self._workers.close()
        self._readers.close()

    def _on_stored(self, lane: Lane, events: Sequence[Session.Event], notification_id: int) -> None:
        self.lanes.note_stored(lane, events)
        self.feed.note_stored(notification_id)
