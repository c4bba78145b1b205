"""The lines of a DeepSeek Harness session: events, and rows that pack a run of stream deltas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from foldlog.importers.times import is_number

# The member that holds one value per delta of a packed row, and the members its data has.
PACKED: Final = {"text-chunks": "texts", "reasoning-chunks": "texts", "tool-call-chunks": "args"}
ROW_MEMBERS: Final = {"type", "seq0", "time0", "data"}
DATA_MEMBERS: Final = {"turn", "step", "index", "dt"}
EVENT_MEMBERS: Final = {
    *("type", "seq", "time", "data", "surfaceOp", "sourceEventSeqs", "ignorable"),
}


@dataclass(frozen=True, slots=True)
class Record:
    """What one line stores: `count` events from `seq` on; more than one only in a packed row."""

    type: str
    seq: int
    time_ms: object
    data: Mapping[str, Any]
    surface_op: object = None
    count: int = 1


def record_of(fields: Mapping[str, Any]) -> Record:
    """Return the record of a line. Raises ValueError, which says what is wrong with it."""
    kind = fields.get("type")
    if not isinstance(kind, str) or not kind:
        raise ValueError("it has no type")
    if kind in PACKED:
        return _packed(fields, kind)
    seq, data = fields.get("seq"), fields.get("data")
    if unknown := fields.keys() - EVENT_MEMBERS:
        raise ValueError(f"it has a member no event has: {min(unknown)}")
    if not is_count(seq):
        raise ValueError("its seq is no number from 0 on")
    if not is_number(fields.get("time")):
        raise ValueError("its time is no number")
    held = data if isinstance(data, Mapping) else {}
    return Record(kind, seq, fields["time"], held, fields.get("surfaceOp"))


def _packed(fields: Mapping[str, Any], kind: str) -> Record:
    data, seq = fields.get("data"), fields.get("seq0")
    if fields.keys() != ROW_MEMBERS or not isinstance(data, Mapping) or not is_count(seq):
        raise ValueError(f"it is no {kind} row: it takes exactly type, seq0, time0 and data")
    values, gaps = data.get(PACKED[kind]), data.get("dt")
    if data.keys() - {"id", "name"} != DATA_MEMBERS | {PACKED[kind]}:
        raise ValueError(f"the data of its {kind} row has other members than it takes")
    if not isinstance(values, list) or not values or not all(isinstance(v, str) for v in values):
        raise ValueError(f"{PACKED[kind]} of its {kind} row are not texts")
    if not isinstance(gaps, list) or not all(is_number(gap) for gap in gaps):
        raise ValueError(f"dt of its {kind} row are not numbers")
    if len(gaps) != len(values) - 1:
        raise ValueError(f"its {kind} row has {len(gaps)} gaps for {len(values)} deltas")
    return Record(kind, seq, fields["time0"], data, count=len(values))


def is_count(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer from 0 on."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
