"""The package's own test cases, fitted to our recorders."""

from __future__ import annotations

import tempfile
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from unittest import TestCase

import pytest
from eventsourcing.persistence import (
    AggregateRecorder,
    ApplicationRecorder,
    ProcessRecorder,
    StoredEvent,
    TrackingRecorder,
)
from eventsourcing.tests.persistence import (
    AggregateRecorderTestCase,
    ApplicationRecorderTestCase,
    InfrastructureFactoryTestCase,
    NonInterleavingNotificationIDsBaseCase,
    TrackingRecorderTestCase,
)
from eventsourcing.utils import Environment
from foldlog.persistence.checkpoints import CheckpointRecorder
from foldlog.persistence.factory import SessionFactory
from foldlog.persistence.recorder import SessionRecorder
from foldlog.persistence.rows import SessionNotification
from foldlog.persistence.store import Store

from tests.persistence.stores import fresh_store, fresh_url


class RankedRecorder:
    """A recorder whose notification ids are replaced by their ranks: 1 for the first, and so on.

    The package's cases expect dense ids. Ours rise, but on PostgreSQL they are made of transaction
    ids and have gaps, so the cases see each id's rank among those readable, and give ranks back.
    """

    def __init__(self, recorder: SessionRecorder) -> None:
        self._recorder = recorder
        self._ids: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._recorder, name)

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int]:
        ids = self._recorder.insert_events(stored_events, **kwargs)
        return [self._rank(each) for each in ids]

    def max_notification_id(self) -> int | None:
        last = self._recorder.max_notification_id()
        return None if last is None else self._rank(last)

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> list[SessionNotification]:
        found = self._recorder.select_notifications(
            self._id(start), limit, self._id(stop), topics, inclusive_of_start=inclusive_of_start
        )
        return [replace(each, id=self._rank(each.id)) for each in found]

    def _rank(self, notification_id: int) -> int:
        self._read_on()
        return bisect_left(self._ids, notification_id) + 1

    def _id(self, rank: int | None) -> int | None:
        self._read_on()
        return rank if not rank or rank > len(self._ids) else self._ids[rank - 1]

    def _read_on(self) -> None:
        ids = list(self._ids)
        last = ids[-1] if ids else 0
        ids += [place for place, _, _ in self._recorder.select_changes(last, 100_000)]
        self._ids = ids


class OnStore(TestCase):
    """A case with a store of its own."""

    backend: str
    store: Store

    def setUp(self) -> None:
        stack = ExitStack()
        self.addCleanup(stack.close)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self.store = stack.enter_context(fresh_store(self.backend, folder))


class AggregateCases(OnStore, AggregateRecorderTestCase):
    """On checkpoints, kept from ignoring duplicates, which the cases expect to be refused."""

    def create_recorder(self) -> AggregateRecorder:
        kind = type(self.store.checkpoints)
        strict = type("Strict", (kind,), {"on_conflict": ""})
        datastore = cast("Any", self.store.checkpoints).datastore
        return cast("CheckpointRecorder", strict(datastore))


class ApplicationCases(OnStore, ApplicationRecorderTestCase[ApplicationRecorder]):
    """On the event recorder with ranks for ids; subscriptions with the ids as they are."""

    EXPECT_CONTIGUOUS_NOTIFICATION_IDS = False
    ranked = True

    def create_recorder(self) -> ApplicationRecorder:
        if self.ranked:
            return cast("ApplicationRecorder", RankedRecorder(self.store.recorder))
        return self.store.recorder

    def test_insert_subscribe(self) -> None:
        self.ranked = False
        self.optional_test_insert_subscribe()


class NonInterleavingCases(OnStore, NonInterleavingNotificationIDsBaseCase):
    """On the event recorder."""

    def create_recorder(self) -> ApplicationRecorder:
        return self.store.recorder


class TrackingCases(OnStore, TrackingRecorderTestCase):
    """On the session index."""

    def create_recorder(self) -> TrackingRecorder:
        return self.store.index


class FactoryCases(InfrastructureFactoryTestCase[SessionFactory]):
    """On the factory: it hands out one store's recorders, and has no process recorder."""

    backend: str

    def setUp(self) -> None:
        stack = ExitStack()
        self.addCleanup(stack.close)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self.env = Environment(
            env={
                "PERSISTENCE_MODULE": "foldlog.persistence.factory",
                "FOLDLOG_DATABASE_URL": stack.enter_context(fresh_url(self.backend, folder)),
            }
        )
        super().setUp()

    def expected_factory_class(self) -> type[SessionFactory]:
        return SessionFactory

    def expected_aggregate_recorder_class(self) -> type[AggregateRecorder]:
        return type(self.factory.store.checkpoints)

    def expected_application_recorder_class(self) -> type[ApplicationRecorder]:
        return type(self.factory.store.recorder)

    def expected_tracking_recorder_class(self) -> type[TrackingRecorder]:
        return type(self.factory.store.index)

    def tracking_recorder_subclass(self) -> type[TrackingRecorder]:
        return type(self.factory.store.index)

    def expected_process_recorder_class(self) -> type[ProcessRecorder]:
        return ProcessRecorder

    def test_create_tracking_recorder(self) -> None:
        assert self.factory.tracking_recorder() is self.factory.store.index

    def test_create_process_recorder(self) -> None:
        with pytest.raises(NotImplementedError):
            self.factory.process_recorder()


CASES = (AggregateCases, ApplicationCases, NonInterleavingCases, TrackingCases, FactoryCases)
