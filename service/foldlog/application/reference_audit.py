"""An audit of what is noted of attachments: which rows name which, so that none is collected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from foldlog.application.attachments import digests_of
from foldlog.application.verdict import Fault
from foldlog.application.walk import Walked
from foldlog.persistence.object_table import ObjectTable, Reference
from foldlog.v1.service_pb2 import AUDITED_PART_ATTACHMENTS

AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Noted:
    """The references that are noted of a session's rows, and up to where in the feed."""

    references: Sequence[Reference]
    place: int


@dataclass(frozen=True, slots=True)
class _Naming:
    """A row that names an attachment."""

    seq: int
    place: int


class ReferenceAudit:
    """Takes in a session's rows one after the other, and compares at the end."""

    def __init__(self, noted: Noted, tenant: str, session_id: str) -> None:
        self._noted, self._tenant, self._session_id = noted, tenant, session_id
        self._namings: dict[tuple[int, bytes], _Naming] = {}
        self._dropped: set[int] = set()  # a fact may have come since the references were read

    def take(self, walked: Walked) -> None:
        """Take in the next row."""
        envelope, version = walked.row.envelope, walked.row.ref.version
        if not walked.row.is_event or walked.row.damage is not None:
            return
        if envelope.dropped:
            self._dropped.add(version)
            return
        for digest in digests_of(envelope):
            self._namings[version, digest] = _Naming(envelope.seq, walked.stored.id)

    def faults(self, table: ObjectTable) -> Iterator[Fault]:
        """Yield how the notes depart from the rows, and what is gone that these name."""
        if any(each.tenant != self._tenant for each in self._noted.references):
            yield self._fault("attachments that it names are noted under another tenant")
        noted = {
            (each.version, each.sha256)
            for each in self._noted.references
            if not each.is_dropped and each.version not in self._dropped
        }
        passed = {key for key, each in self._namings.items() if each.place <= self._noted.place}
        if missing := passed - noted:
            yield self._fault(f"{len(missing)} attachments that it names are not noted as named")
        if extra := noted - self._namings.keys():
            yield self._fault(f"{len(extra)} attachments are noted as named that it does not name")
        yield from self._gone(table)

    def _gone(self, table: ObjectTable) -> Iterator[Fault]:
        digests = list(dict.fromkeys(digest for _, digest in self._namings))
        stored: set[bytes] = set()
        for start in range(0, len(digests), AT_ONCE):
            stored |= table.sizes(self._tenant, digests[start : start + AT_ONCE]).keys()
        for (_, digest), naming in self._namings.items():
            if digest not in stored:
                said = f"attachment {digest.hex()}, which it names, is not stored"
                yield self._fault(said, naming.seq)

    def _fault(self, description: str, seq: int | None = None) -> Fault:
        return Fault(self._session_id, seq, description, AUDITED_PART_ATTACHMENTS)
