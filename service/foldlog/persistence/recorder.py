"""What the application asks of an event recorder, whatever the database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol
from uuid import UUID

from eventsourcing.persistence import ApplicationRecorder, StoredEvent

from foldlog.persistence.rows import SessionNotification, WholeRow

STATEMENT_ROWS = 1_000
TRANSACTION_ROWS = 1_000_000
VERSIONS_AT_ONCE = 500
AUDIT_ROWS = 500


def counted(chunks: Iterable[Sequence[StoredEvent]]) -> Iterator[Sequence[StoredEvent]]:
    """Yield the chunks, until there are more rows than the feed can number in one transaction."""
    count = 0
    for chunk in chunks:
        count += len(chunk)
        if count > TRANSACTION_ROWS:
            raise ValueError(f"more than {TRANSACTION_ROWS} rows in one transaction")
        yield chunk


class OnThread(Protocol):
    """Runs what blocks on a thread."""

    async def __call__(self, function: Callable[..., Any], *args: Any) -> Any: ...


class LoopInserter(ABC):
    """Inserts from an event loop, for stores whose driver can wait there."""

    @abstractmethod
    async def insert(self, rows: Sequence[StoredEvent], on_thread: OnThread) -> int:
        """Write rows, no more than one statement takes, and return their newest id.

        Raises what `on_thread` makes of the errors of `insert_events`.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of what is kept. Blocking."""


class SessionRecorder(ApplicationRecorder):
    """Writes and reads the event table. Methods block, and any thread may call them."""

    @abstractmethod
    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: Any) -> Sequence[int]:
        """Write the rows in one transaction and return their notification ids, in input order.

        Within a session the ids rise with the versions. Raises DuplicateRowError.
        """

    def loop_inserter(self) -> LoopInserter | None:
        """Return what writes from an event loop, where this recorder has such a thing."""
        return None

    @abstractmethod
    def insert_chunks(self, chunks: Iterable[Sequence[StoredEvent]]) -> int:
        """Write all the chunks in one transaction; return the last row's notification id, or 0.

        At most 1,000,000 rows. If the iterable raises, nothing is written. Until the transaction
        ends, the feed stands still, and on SQLite writers wait. Raises DuplicateRowError.
        """

    @abstractmethod
    def is_held(self, stored_event: StoredEvent) -> bool:
        """Tell whether a transaction that has not ended is writing this row. Writes nothing.

        If not, it is stored, or it was not written; one that the database has not received yet may
        come later.
        """

    @abstractmethod
    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
        max_bytes: int | None = None,
    ) -> Sequence[StoredEvent]:
        """Return rows by version: `gt` is exclusive, `lte` inclusive.

        With `max_bytes`, fewer than `limit` where their states would be larger together, but one.
        """

    @abstractmethod
    def select_whole(self, originator_id: UUID, gt: int, max_bytes: int) -> list[WholeRow]:
        """Return rows with every column, from the version after `gt` on, in ascending order.

        At most AUDIT_ROWS of them, and fewer where their states would be larger together, but one.
        """

    @abstractmethod
    def select_versions(self, originator_id: UUID, versions: Sequence[int]) -> list[StoredEvent]:
        """Return the rows with these versions, those that exist, in ascending order."""

    @abstractmethod
    def last_version(self, originator_id: UUID) -> int | None:
        """Return the highest version of the session. Costs one look-up."""

    @abstractmethod
    def find_request(self, originator_id: UUID, request_key: bytes) -> StoredEvent | None:
        """Return the row written under the request key."""

    @abstractmethod
    def replace_states(self, originator_id: UUID, states: Sequence[tuple[int, bytes]]) -> None:
        """Give existing rows, named by version, new states, in one transaction.

        Raises IntegrityError, and changes nothing, if a row is missing.
        """

    @abstractmethod
    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
        max_bytes: int | None = None,
    ) -> Sequence[SessionNotification]:
        """Return rows in the feed's order, `start` and `stop` included.

        The feed is complete up to each row it returns: no row with a lower id appears later. With
        `max_bytes`, fewer than `limit` where their states would be larger together, but one.
        """

    @abstractmethod
    def select_tenant_notifications(
        self, tenant: str, after_id: int, limit: int, max_bytes: int
    ) -> tuple[list[SessionNotification], int]:
        """Return a tenant's rows after a place in the feed, and the place up to which it was read.

        That is `after_id` at the feed's end. Of other tenants' rows nothing but the place is read.
        With rows that are larger together than `max_bytes` fewer than `limit`, but one.
        """

    @abstractmethod
    def last_stored_id(self) -> int:
        """Return the highest notification id of all, or 0; the feed's readers may not be there yet.

        What commits later may stand before it.
        """

    @abstractmethod
    def count_tenant_rows(self, tenant: str, after_id: int, most: int) -> int:
        """Return how many rows of a tenant come after a place in the feed, or `most` if more do."""

    @abstractmethod
    def select_changes(self, after_id: int, limit: int) -> list[tuple[int, UUID, int]]:
        """Return (notification id, originator id, version) of the feed's rows after an id."""

    @abstractmethod
    def select_heads(
        self, tenant: str, after_id: int, stop: int, limit: int
    ) -> list[tuple[int, UUID, int]]:
        """Return (notification id, originator id, version) of the newest rows of sessions.

        Of a tenant's sessions with rows after an id; what is behind `stop` is as if it were not
        there. In the feed's order.
        """

    @abstractmethod
    def let_go(self) -> None:
        """Let nothing stay of states that were replaced, as far as this database can do it now."""

    @abstractmethod
    def notify(self) -> None:
        """Hint to every process that rows were committed. Cheap and best effort."""

    @abstractmethod
    def wait_for_hint(self, timeout_s: float) -> bool:
        """Wait for a hint, and tell whether one came. One may be lost, so poll as well."""
