"""The tables of attachments and of the references to them, whatever the database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from eventsourcing.persistence import Tracking

from foldlog.persistence.queries import Query, distinct_values

REFERENCES_NAME = "object_references"
COLUMNS = "size_bytes, created_ns, touched_ns, file, chunks, data, key_id, wrapped"
# Whether a row that names an attachment counts: the session's own, which is there or was deleted
# only lately, or a fork's that reads it. A session that the index does not have counts.
COUNTS = """
    EXISTS (
        SELECT 1 FROM foldlog_object_references r
        LEFT JOIN foldlog_sessions s ON s.aggregate_id = r.aggregate_id
        WHERE r.tenant = o.tenant AND r.sha256 = o.sha256 AND NOT r.dropped
        AND (s.aggregate_id IS NULL OR NOT s.deleted OR s.update_s * 1000000000 + s.update_ns >= %s
            OR {is_forked})
    )
"""
IS_FORKED = """EXISTS (
        SELECT 1 FROM foldlog_lineage l
        JOIN foldlog_sessions f ON f.aggregate_id = l.aggregate_id
        WHERE l.ancestor_id = r.aggregate_id AND l.to_version >= r.version
        AND (NOT f.deleted OR f.update_s * 1000000000 + f.update_ns >= %s)
    )"""
IS_NAMED = COUNTS.format(is_forked=IS_FORKED)


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An attachment as its row has it: its bytes, or the name of the file that holds them.

    An encrypted one has a key of its own, wrapped by the master key that key_id names.
    """

    sha256: bytes
    size_bytes: int
    created_ns: int
    touched_ns: int
    file: str | None
    chunks: bytes
    data: bytes | None
    key_id: str | None = None
    wrapped: bytes | None = None


class ObjectKey(NamedTuple):
    """The wrapped key of an encrypted attachment."""

    tenant: str
    sha256: bytes
    key_id: str
    wrapped: bytes


class Reference(NamedTuple):
    """A row of the event table that names an attachment."""

    tenant: str
    sha256: bytes
    aggregate_id: UUID
    version: int
    seq: int
    is_dropped: bool


class Dropped(NamedTuple):
    """Seqs of one session whose bodies are dropped, both ends in."""

    aggregate_id: UUID
    first: int
    last: int


@dataclass(slots=True)
class ReferenceChanges:
    """What a stretch of the feed says of references."""

    added: list[Reference] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)


class Surveyed(NamedTuple):
    """An attachment as a collection sees it. `is_named` is not found out for a young one."""

    sha256: bytes
    size_bytes: int
    file: str | None
    is_young: bool
    is_named: bool


class ObjectTable(ABC):
    """Reads and writes the rows. Methods block, and any thread may call them."""

    same: str  # how the database compares values of which both may be NULL

    @abstractmethod
    def _rows(self, query: Query) -> list[tuple[Any, ...]]:
        """Run a query."""

    @abstractmethod
    def _write(self, statements: Iterable[Query]) -> list[int]:
        """Run statements in one transaction; return how many rows each changed."""

    @abstractmethod
    def _key(self, aggregate_id: UUID) -> object:
        """Return an aggregate id as the database takes it."""

    @abstractmethod
    def _id(self, key: Any) -> UUID:
        """Return an aggregate id that the database gave."""

    @abstractmethod
    def apply_references(self, changes: ReferenceChanges, tracking: Tracking) -> None:
        """Note references and move the position in the feed, in one transaction.

        Raises IntegrityError, and changes nothing, unless the position grows.
        """

    def find(self, tenant: str, sha256: bytes) -> StoredObject | None:
        """Return an attachment's row."""
        sql = f"SELECT {COLUMNS} FROM foldlog_objects WHERE tenant = %s AND sha256 = %s"
        rows = self._rows((sql, [tenant, sha256]))
        return StoredObject(sha256, *rows[0]) if rows else None

    def sizes(self, tenant: str, digests: Sequence[bytes]) -> dict[bytes, tuple[int, int]]:
        """Return size and touched_ns of those that are stored."""
        sql = (
            "SELECT sha256, size_bytes, touched_ns FROM foldlog_objects"
            f" WHERE tenant = %s AND sha256 IN ({_marks(digests)})"
        )
        found = self._rows((sql, [tenant, *digests])) if digests else []
        return {digest: (size, touched_ns) for digest, size, touched_ns in found}

    def touch(self, tenant: str, digests: Sequence[bytes], now_ns: int) -> int:
        """Let attachments be young again; return how many are there."""
        sql = (
            "UPDATE foldlog_objects SET touched_ns = %s"
            f" WHERE tenant = %s AND sha256 IN ({_marks(digests)})"
        )
        return self._write([(sql, [now_ns, tenant, *digests])])[0] if digests else 0

    def insert(self, tenant: str, stored: StoredObject) -> bool:
        """Write an attachment's row; tell whether there was none."""
        sql = (
            f"INSERT INTO foldlog_objects (tenant, sha256, {COLUMNS})"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
        )
        return self._write([(sql, [tenant, stored.sha256, *_values(stored)])]) == [1]

    def replace(self, tenant: str, damaged: StoredObject, stored: StoredObject) -> bool:
        """Put a whole attachment in a damaged one's place, unless another was faster."""
        sql = (
            "UPDATE foldlog_objects SET size_bytes = %s, created_ns = %s, touched_ns = %s,"
            " file = %s, chunks = %s, data = %s, key_id = %s, wrapped = %s"
            f" WHERE tenant = %s AND sha256 = %s AND file {self.same} %s"
        )
        where = [tenant, damaged.sha256, damaged.file]
        return self._write([(sql, [*_values(stored), *where])]) == [1]

    def survey(self, tenant: str, after: bytes, young_from_ns: int, limit: int) -> list[Surveyed]:
        """Return a page of attachments in the order of their digests."""
        sql = (
            "SELECT o.sha256, o.size_bytes, o.file, o.touched_ns >= %s,"
            f" CASE WHEN o.touched_ns >= %s THEN o.touched_ns < 0 ELSE {IS_NAMED} END"
            " FROM foldlog_objects o WHERE o.tenant = %s AND o.sha256 > %s"
            " ORDER BY o.sha256 LIMIT %s"
        )
        times = [young_from_ns] * 4
        rows = self._rows((sql, [*times, tenant, after, limit]))
        return [Surveyed(d, size, file, bool(y), bool(n)) for d, size, file, y, n in rows]

    def delete(self, tenant: str, found: Surveyed, young_from_ns: int) -> bool:
        """Delete an attachment's row, if it still is old and nothing that counts names it."""
        condition = f"touched_ns < %s AND file {self.same} %s AND NOT {IS_NAMED}"
        gone = f"DELETE FROM foldlog_objects AS o WHERE tenant = %s AND sha256 = %s AND {condition}"
        old: list[object] = [young_from_ns, found.file, young_from_ns, young_from_ns]
        return self._write([(gone, [tenant, found.sha256, *old])]) == [1]

    def forget_references_to(self, tenant: str, sha256: bytes) -> None:
        """Forget the references to an attachment whose row is deleted, once its file is too."""
        sql = (
            "DELETE FROM foldlog_object_references WHERE tenant = %s AND sha256 = %s"
            " AND NOT EXISTS (SELECT 1 FROM foldlog_objects WHERE tenant = %s AND sha256 = %s)"
        )
        self._write([(sql, [tenant, sha256] * 2)])

    def dropped_references(
        self, tenant: str, sha256: bytes, young_from_ns: int
    ) -> list[tuple[UUID, int]]:
        """Return (aggregate id, version) of dropped rows that forks may still read."""
        sql = (
            "SELECT r.aggregate_id, r.version FROM foldlog_object_references r"
            f" WHERE r.tenant = %s AND r.sha256 = %s AND r.dropped AND {IS_FORKED}"
        )
        rows = self._rows((sql, [tenant, sha256, young_from_ns]))
        return [(self._id(key), version) for key, version in rows]

    def forget_reference(self, sha256: bytes, aggregate_id: UUID, version: int) -> None:
        """Forget a reference whose row has lost its body."""
        sql = (
            "DELETE FROM foldlog_object_references"
            " WHERE aggregate_id = %s AND version = %s AND sha256 = %s"
        )
        self._write([(sql, [self._key(aggregate_id), version, sha256])])

    def replace_key(self, old: ObjectKey, new: ObjectKey) -> bool:
        """Wrap an attachment's key anew, unless another was faster."""
        sql = (
            "UPDATE foldlog_objects SET key_id = %s, wrapped = %s"
            " WHERE tenant = %s AND sha256 = %s AND wrapped = %s"
        )
        values: list[object] = [new.key_id, new.wrapped, old.tenant, old.sha256, old.wrapped]
        return self._write([(sql, values)]) == [1]

    def wrapped_by(self, key_id: str, after: tuple[str, bytes], limit: int) -> list[ObjectKey]:
        """Return a page of the keys that a master key wraps, by tenant and digest."""
        sql = (
            "SELECT tenant, sha256, key_id, wrapped FROM foldlog_objects"
            " WHERE key_id = %s AND (tenant, sha256) > (%s, %s) ORDER BY tenant, sha256 LIMIT %s"
        )
        return [ObjectKey(*each) for each in self._rows((sql, [key_id, *after, limit]))]

    def count(self, key_id: str) -> int:
        """Return how many attachments' keys a master key wraps."""
        sql = "SELECT count(*) FROM foldlog_objects WHERE key_id = %s"
        return int(self._rows((sql, [key_id]))[0][0])

    def key_ids(self) -> list[str]:
        """Return the master keys that wrap any. Costs a look-up for each."""
        return distinct_values(self._rows, "foldlog_objects", "key_id")

    def drop_references(self, aggregate_id: UUID) -> list[bytes]:
        """Let a session's references count no more, and return what they name."""
        key = self._key(aggregate_id)
        drop = "UPDATE foldlog_object_references SET dropped = %s WHERE aggregate_id = %s"
        self._write([(drop, [True, key])])
        named = "SELECT DISTINCT sha256 FROM foldlog_object_references WHERE aggregate_id = %s"
        return [bytes(digest) for (digest,) in self._rows((named, [key]))]

    def unnamed(self, tenant: str, digests: Sequence[bytes], young_from_ns: int) -> list[Surveyed]:
        """Return those of some attachments that no row names which counts."""
        sql = (
            "SELECT o.sha256, o.size_bytes, o.file FROM foldlog_objects o"
            f" WHERE o.tenant = %s AND o.sha256 IN ({_marks(digests)}) AND NOT {IS_NAMED}"
        )
        rows = (
            self._rows((sql, [tenant, *digests, young_from_ns, young_from_ns])) if digests else []
        )
        return [Surveyed(digest, size, file, False, False) for digest, size, file in rows]

    def age(self, tenant: str, digests: Sequence[bytes]) -> None:
        """Let attachments be old: whoever asks for one from now on makes it young again."""
        sql = (
            "UPDATE foldlog_objects SET touched_ns = 0"
            f" WHERE tenant = %s AND sha256 IN ({_marks(digests)})"
        )
        if digests:
            self._write([(sql, [tenant, *digests])])

    def forget_references(self, aggregate_id: UUID) -> None:
        """Forget the references of a session that is erased."""
        sql = "DELETE FROM foldlog_object_references WHERE aggregate_id = %s"
        self._write([(sql, [self._key(aggregate_id)])])

    def references(self, aggregate_id: UUID) -> tuple[list[Reference], int]:
        """Return what is noted of a session's rows, and up to where in the feed.

        Both of one moment, unless a collection follows the feed all the time.
        """
        sql = (
            "SELECT tenant, sha256, version, seq, dropped FROM foldlog_object_references"
            " WHERE aggregate_id = %s ORDER BY version"
        )
        for _ in range(10):
            place, rows = self.followed(), self._rows((sql, [self._key(aggregate_id)]))
            if self.followed() == place:
                break
        found = [
            Reference(tenant, bytes(digest), aggregate_id, version, seq, bool(dropped))
            for tenant, digest, version, seq, dropped in rows
        ]
        return found, place

    def followed(self) -> int:
        """Return the notification id up to which references are noted."""
        sql = "SELECT notification_id FROM foldlog_tracking WHERE application_name = %s"
        rows = self._rows((sql, [REFERENCES_NAME]))
        return int(rows[0][0]) if rows else 0

    def files(self, tenant: str, digests: Sequence[bytes]) -> set[str]:
        """Return the files that the rows of these digests name."""
        sql = (
            "SELECT file FROM foldlog_objects"
            f" WHERE tenant = %s AND sha256 IN ({_marks(digests)}) AND file IS NOT NULL"
        )
        return {file for (file,) in self._rows((sql, [tenant, *digests]))} if digests else set()


def _marks(values: Sequence[object]) -> str:
    return ", ".join(["%s"] * len(values))


def _values(stored: StoredObject) -> list[object]:
    times, key = [stored.created_ns, stored.touched_ns], [stored.key_id, stored.wrapped]
    return [stored.size_bytes, *times, stored.file, stored.chunks, stored.data, *key]
