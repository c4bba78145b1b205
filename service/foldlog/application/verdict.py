"""What an audit of stored rows comes to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from foldlog.v1.service_pb2 import AUDITED_PART_LOG, AuditedPart

MAX_FAULTS = 100


@dataclass(frozen=True, slots=True)
class Fault:
    """Something stored that is not as it was written."""

    session_id: str
    seq: int | None
    description: str
    part: AuditedPart.ValueType = AUDITED_PART_LOG


@dataclass(slots=True)
class Verdict:
    """What an audit found. `chains` has the values recomputed at the versions asked for."""

    next_seq: int = 0
    version: int = 0
    row_count: int = 0
    chain: bytes = b""
    is_deleted: bool = False
    faults: list[Fault] = field(default_factory=list)
    chains: dict[int, bytes] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """Whether there are as many faults as are told."""
        return len(self.faults) >= MAX_FAULTS

    def note(self, faults: Sequence[Fault]) -> None:
        """Take faults in, as far as there is room."""
        self.faults += faults[: MAX_FAULTS - len(self.faults)]
