"""The active log: the events that count, less what rewinds undid."""

from __future__ import annotations

from collections.abc import Sequence

from foldlog.core.event import Record


def active_by_definition(records: Sequence[Record]) -> list[Record]:
    """Return the active log after the last record, straight from its definition. O(n²).

    A(e) = A(previous) + e; after a rewind to t, A = A(t): the state after the last event up to t.
    """
    states: list[list[Record]] = []
    active: list[Record] = []
    for record in records:
        if record.rewind_to is None:
            active = [*active, record]
        else:
            kept = sum(1 for earlier in records[: len(states)] if earlier.seq <= record.rewind_to)
            active = states[kept - 1] if kept else []
        states.append(active)
    return active


def active_path(records: Sequence[Record], base_seq: int = -1) -> tuple[int | None, list[Record]]:
    """Return (t, later): the active log after the last record is that after seq t, then `later`.

    The records ascend by seq and all follow base_seq, after which the log is known; -1 is the empty
    log. t is None if the log to begin with is the one after base_seq, else below it. O(n).
    """
    later: list[Record] = []
    index = len(records) - 1
    while index >= 0:
        record = records[index]
        index -= 1
        if record.rewind_to is None:
            later.append(record)
            continue
        if record.rewind_to < base_seq:
            return record.rewind_to, later[::-1]
        while index >= 0 and records[index].seq > record.rewind_to:
            index -= 1
    return None, later[::-1]
