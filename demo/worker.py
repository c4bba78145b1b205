"""An agent worker: appends a transcript's batches, and knows what was acknowledged."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from foldlog import Appended, Client, Session, errors

from demo.transcripts import Batch, Transcript


def begin(client: Client, transcript: Transcript) -> Session:
    """Create the transcript's session."""
    return client.create(
        transcript.session_id, labels=transcript.labels, metadata_json=transcript.metadata_json
    )


def append(session: Session, batch: Batch) -> Appended:
    """Append a batch under its own request id."""
    return session.append(*batch.events, request_id=batch.request_id(session.session_id))


def replay(session: Session, batches: Iterable[Batch]) -> None:
    """Append batches, one after the other, as the agent did."""
    for batch in batches:
        append(session, batch)


class DoomedWorker:
    """Replays in a thread of its own, without retries, until the server is gone."""

    def __init__(self, address: str, transcript: Transcript, alarm_after: int) -> None:
        self.acknowledged: list[tuple[Batch, Appended]] = []
        self.in_flight: Batch | None = None
        self.half_way = threading.Event()
        self._transcript = transcript
        self._alarm_after = alarm_after
        self._client = Client(address, retry=None)
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def acknowledged_events(self) -> int:
        """How many events were acknowledged."""
        return sum(len(batch.events) for batch, _ in self.acknowledged)

    def start(self) -> None:
        """Begin to replay. `half_way` is set once `alarm_after` batches were acknowledged."""
        self._thread.start()

    def join(self) -> None:
        """Wait until the worker has noticed that the server is gone."""
        self._thread.join()
        self._client.close()

    def _run(self) -> None:
        session = begin(self._client, self._transcript)
        session.open_writer(owner="worker-1")
        for batch in self._transcript.batches:
            self.in_flight = batch
            try:
                answer = append(session, batch)
            except errors.ConnectionLostError:
                return
            self.acknowledged.append((batch, answer))
            if len(self.acknowledged) == self._alarm_after:
                self.half_way.set()
        self.in_flight = None
