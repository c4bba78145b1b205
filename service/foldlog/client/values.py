"""What calls answer, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from foldlog.codec import datetime_of
from foldlog.core.anchor import Anchor
from foldlog.core.invariant import Violation
from foldlog.core.message import AttachmentPart, Message


@dataclass(frozen=True, slots=True)
class ReplaceResult:
    """What a replace did: the seqs it shadowed, in surface order, and the ids it unpaired.

    `index` counts the events of the call.
    """

    index: int
    seq: int
    position: int
    shadowed_seqs: tuple[int, ...] = ()
    orphaned_result_ids: tuple[str, ...] = ()
    unanswered_call_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Appended:
    """Events are durable: from first_seq to below next_seq, without gap."""

    first_seq: int
    next_seq: int
    replaces: tuple[ReplaceResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Restored:
    """How many events a restore put back, and the seq the next event takes."""

    count: int
    next_seq: int


@dataclass(frozen=True, slots=True)
class FoldedMessage:
    """A message as the model sees it, and where it comes from."""

    seq: int
    position: int
    message: Message
    time_ns: int
    group: str | None = None

    @property
    def time(self) -> datetime:
        """When it happened, in UTC, cut to whole microseconds."""
        return datetime_of(self.time_ns)


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check found, valid for the log below next_seq."""

    checked: bool
    violation: Violation | None
    next_seq: int

    @property
    def ok(self) -> bool:
        """The request was checked and can be derived from the log."""
        return self.checked and self.violation is None


@dataclass(frozen=True, slots=True)
class ForkPoint:
    """A place in a session's log: the last seq shared, -1 for none."""

    session_id: str
    at_seq: int


@dataclass(frozen=True, slots=True)
class CutState:
    """What is open at a cut of the log: a turn, and calls without a result."""

    open_turn_seq: int | None = None
    unanswered_call_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A session's state. `writer_epoch` is 0 when none is in force."""

    session_id: str
    next_seq: int
    labels: Mapping[str, str]
    metadata_json: str
    create_time_ns: int
    update_time_ns: int
    parent: ForkPoint | None = None
    writer_epoch: int = 0
    open_turn_seq: int | None = None
    whole_from_seq: int = 0

    @property
    def create_time(self) -> datetime:
        """When it was created or forked, in UTC, cut to whole microseconds."""
        return datetime_of(self.create_time_ns)

    @property
    def update_time(self) -> datetime:
        """When its last event or fact was written, in UTC, cut to whole microseconds."""
        return datetime_of(self.update_time_ns)


@dataclass(frozen=True, slots=True)
class Rewound:
    """The rewind's own seq, and what is open after it."""

    seq: int
    next_seq: int
    cut: CutState


@dataclass(frozen=True, slots=True)
class Erased:
    """What an erasure destroyed: sessions, forks first, and attachments nothing else names.

    Pending attachments go within minutes, once no write under way can name them.
    """

    next_seq: int
    session_ids: tuple[str, ...]
    attachment_count: int
    pending_attachment_count: int


@dataclass(frozen=True, slots=True)
class HistoryCut:
    """What a snapshot dropped; every state from whole_from_seq on can be read."""

    dropped_count: int
    whole_from_seq: int
    next_seq: int


@dataclass(frozen=True, slots=True)
class Diff:
    """Two folds: how many messages they begin with in common, then what each has alone.

    `shared_seq` is the last seq both logs share by lineage, None if they share none.
    """

    common_count: int
    left: tuple[FoldedMessage, ...]
    right: tuple[FoldedMessage, ...]
    shared_seq: int | None
    left_next_seq: int
    right_next_seq: int


class AuditedPart(StrEnum):
    """What a fault was found in."""

    LOG = "log"
    """The log itself."""
    CHECKPOINT = "checkpoint"
    """A cache of the log."""
    INDEX = "index"
    """What listings read."""
    ATTACHMENTS = "attachments"
    """Attachments that it names, or what is noted of them."""
    UNKNOWN = "unknown"
    """Something that a newer service looks at."""


@dataclass(frozen=True, slots=True)
class ChainFault:
    """Something stored that is not as it was written. `seq` is None for a fact."""

    session_id: str
    seq: int | None
    description: str
    part: AuditedPart = AuditedPart.LOG


@dataclass(frozen=True, slots=True)
class Verification:
    """What an audit found: at most 100 faults, in the order of the log.

    `version` is how many rows the session itself has; `chains` are the values recomputed at the
    versions asked for, as far as there are rows.
    """

    intact: bool
    row_count: int
    chain: bytes
    faults: tuple[ChainFault, ...]
    next_seq: int
    version: int = 0
    chains: Mapping[int, bytes] = field(default_factory=dict)
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class SessionHead:
    """Where a session's log stood, signed if that was asked for.

    `damage` says why the newest row cannot be read; there is no chain then, and no signature.
    """

    anchor: Anchor
    damage: str = ""


@dataclass(frozen=True, slots=True)
class StoredAttachment:
    """Bytes that are stored. `existed` says that they were, whole, before they were put."""

    sha256: bytes
    size_bytes: int
    existed: bool

    def part(self, media_type: str, name: str | None = None) -> AttachmentPart:
        """Return a reference to them, for the content of a message."""
        return AttachmentPart(self.sha256, media_type, name, self.size_bytes)


@dataclass(frozen=True, slots=True)
class Collected:
    """What a collection deleted, or would have, and how many attachments it looked at."""

    collected_count: int
    collected_bytes: int
    examined_count: int
