"""The service as an `eventsourcing` application, and its calls in groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar
from uuid import UUID, uuid4

from eventsourcing.application import Application
from eventsourcing.persistence import InfrastructureFactory, JSONTranscoder, Mapper, Transcoder
from eventsourcing.utils import Environment

from foldlog import observability
from foldlog.application.attachments import Attachments
from foldlog.application.bodies import Bodies
from foldlog.application.chains import Chains
from foldlog.application.checking import Checking
from foldlog.application.collecting import Collecting
from foldlog.application.committer import Committer
from foldlog.application.domain import Session
from foldlog.application.explaining import Explaining
from foldlog.application.feed import Feed
from foldlog.application.headers import HeaderCache, Headers
from foldlog.application.history import History
from foldlog.application.identity import DEFAULT_TENANT
from foldlog.application.lane import Lane, Services
from foldlog.application.lanes import Lanes
from foldlog.application.ledger import CallLedger
from foldlog.application.mapper import SessionMapper
from foldlog.application.ranges import Ranges
from foldlog.application.readers import Readers
from foldlog.application.reading import Reading
from foldlog.application.records import Records
from foldlog.application.recovery import Recovery
from foldlog.application.requests import Requests
from foldlog.application.retention import Retention
from foldlog.application.rows import RowReader
from foldlog.application.steps import Steps
from foldlog.application.transfer import Transfer
from foldlog.application.verifying import Verifying
from foldlog.application.watching import Watching
from foldlog.application.writing import Writing
from foldlog.core.errors import FoldlogError, InternalError, InvalidFieldError
from foldlog.persistence.factory import SessionFactory
from foldlog.persistence.index import IndexPage, IndexQuery, PageTokenError
from foldlog.persistence.store import Store
from foldlog.settings import Settings


class SessionApplication(Application[UUID]):
    """Sessions on one store. Its calls are coroutines of one event loop.

    The package's aggregate cache and automatic snapshots are not used: lanes and checkpoints are in
    their place.
    """

    name = "foldlog"
    env: ClassVar[dict[str, str]] = {"AGGREGATE_CACHE_MAXSIZE": ""}

    def __init__(self, store: Store, settings: Settings) -> None:
        self.store = store
        self.settings = settings
        super().__init__()
        limits, tenant = settings.limits, DEFAULT_TENANT
        reader = RowReader(store, tenant)
        self._readers = Readers(settings.reader_threads, "reader")
        self._committer = Committer(store)
        self.objects = Attachments(store.objects, self._readers, settings, tenant)
        services = Services(
            store,
            History(store, reader),
            self._readers,
            self._committer,
            self._on_stored,
            lambda is_cached: self.lanes.note_fold_wanted(is_cached),
            self.objects,
        )
        self.lanes = Lanes(services, settings.fold_cache_bytes, limits.session_id_bytes)
        self.bodies = Bodies(reader, settings.body_cache_bytes)
        self.feed = Feed(services, self.lanes, settings.feed_poll_s)
        self.reading = Reading(services, self.lanes, self.bodies, limits, tenant)
        self.chains = Chains(services, self.lanes, tenant)
        self.writing = Writing(services, self.lanes, limits, tenant)
        self.checking = Checking(self.reading, settings.check_mode)
        self.retention = Retention(
            services, self.lanes, self.feed, self.bodies, self.writing, tenant
        )
        self.watching = Watching(services, self.lanes, self.feed, self.reading, tenant)
        self.collecting = Collecting(
            services, self.feed, store.objects, settings.object_grace_s, tenant
        )
        self.transfer = Transfer(services, self.lanes, self.reading, self.writing, limits, tenant)
        self.recovery = Recovery(services, self.lanes, self.reading, self.writing, limits, tenant)
        self.ledger = CallLedger(store.index, self.feed, self._readers, limits, tenant)
        self.ranges = Ranges(self.reading, self._readers)
        header_cache = HeaderCache(self.reading)
        uncached = Reading(services, self.lanes, Bodies(reader, 0), limits, tenant)
        self.headers = Headers(header_cache, self.writing, limits)
        self.requests = Requests(services, self.lanes, self.reading, uncached, header_cache, tenant)
        self.steps = Steps(
            services,
            self.reading,
            self.writing,
            self.bodies,
            self.headers,
            self.requests,
            limits,
        )
        self.records = Records(self.reading, self.writing, self.requests, limits)
        self.explaining = Explaining(services, self.reading)
        self.verifying = Verifying(services, self.reading)

    def construct_factory(self, env: Environment) -> InfrastructureFactory[Any]:
        """Return the factory of the store that was given."""
        return SessionFactory(env, self.store)

    def construct_transcoder(self) -> Transcoder:
        """Return a transcoder for the package's sake: our mapper needs none."""
        return JSONTranscoder()

    def construct_mapper(self) -> Mapper[UUID]:
        """Return the mapper of envelopes."""
        return SessionMapper()

    async def list_sessions(self, query: IndexQuery) -> IndexPage:
        """Return a page of the index once it has passed this process's own writes."""
        await self.feed.indexed()
        try:
            return await self._readers.run(self.store.index.list_sessions, query)
        except PageTokenError as error:
            raise InvalidFieldError.of("page_token", str(error)) from None

    def as_ours(self, error: BaseException) -> FoldlogError:
        """Return an error as a caller may see it; a fault of ours is logged under an id."""
        if isinstance(error, FoldlogError):
            return error
        log_id = uuid4().hex
        observability.log(
            "call.failed",
            level="error",
            log_id=log_id,
            error=error,
        )
        return InternalError(log_id=log_id)

    async def start(self) -> None:
        """Begin to follow the feed."""
        await self.feed.start()

    async def stop(self) -> None:
        """Let what is under way end, then close everything but the store."""
        await self._committer.idle()
        await self.lanes.close()
        await self.feed.close()
        await self._committer.close()
        self.objects.close()
        self._readers.close()

    def _on_stored(self, lane: Lane, events: Sequence[Session.Event], notification_id: int) -> None:
        self.lanes.note_stored(lane, events)
        self.feed.note_stored(notification_id)
