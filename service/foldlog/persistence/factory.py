"""The infrastructure factory by which an `eventsourcing` application works on our store."""

from __future__ import annotations

from eventsourcing.persistence import InfrastructureFactory, ProcessRecorder
from eventsourcing.utils import Environment, EnvType

from foldlog.persistence.checkpoints import CheckpointRecorder
from foldlog.persistence.index import SessionIndex
from foldlog.persistence.recorder import SessionRecorder
from foldlog.persistence.store import Store, open_store


class SessionFactory(InfrastructureFactory[SessionIndex]):
    """Hands out the recorders of one store: the one given, or the one FOLDLOG_DATABASE_URL names.

    A store that is given stays open when the factory is closed.
    """

    DATABASE_URL = "FOLDLOG_DATABASE_URL"

    def __init__(self, env: Environment | EnvType | None, store: Store | None = None) -> None:
        super().__init__(env)
        self._owned = store is None
        self.store = store or open_store(self.env.get(self.DATABASE_URL, ""))

    def application_recorder(self) -> SessionRecorder:
        """Return the event recorder."""
        return self.store.recorder

    def aggregate_recorder(self, purpose: str = "checkpoints") -> CheckpointRecorder:
        """Return the checkpoint recorder, whatever the purpose: events have the other one."""
        return self.store.checkpoints

    def tracking_recorder(
        self, tracking_recorder_class: type[SessionIndex] | None = None
    ) -> SessionIndex:
        """Return the session index."""
        return self.store.index

    def process_recorder(self) -> ProcessRecorder:
        """Not offered: no projection of ours writes events."""
        raise NotImplementedError("the session store has no process recorder")

    def close(self) -> None:
        """Close the store, if the factory opened it."""
        if self._owned:
            self.store.close()
