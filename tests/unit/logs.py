"""Random logs, and what is in them: so that a property test can show what it has covered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

from foldlog.core.active import active_by_definition
from foldlog.core.event import EventType, PositionRange, Record
from foldlog.core.surface import Surface, surface_by_definition

SURFACE = (
    EventType.SYSTEM_MESSAGE,
    EventType.USER_MESSAGE,
    EventType.ASSISTANT_MESSAGE,
    EventType.TOOL_RESULT,
)
BOOKKEEPING = (EventType.TURN_START, EventType.STEP_END, EventType.CUSTOM, EventType.TOOL_CALL)


def random_log(
    random: Random, length: int = 24, begun: Sequence[Record] = (), next_seq: int = 0
) -> list[Record]:
    """Return a log, going on from one that has begun: plain events, replaces, rewinds, gaps."""
    log = list(begun)
    while len(log) < length:
        log.append(random_record(random, log, next_seq))
    return log


def random_record(random: Random, log: Sequence[Record], next_seq: int = 0) -> Record:
    """Return an event that may follow a log. One in six leaves a gap, as a restore does."""
    following = max(next_seq, log[-1].seq + 1 if log else 0)
    seq = following + (random.randint(1, 3) if random.random() < 1 / 6 else 0)
    kind = random.random()
    if kind < 0.2 and seq > 0:
        return Record(seq, random.choice(SURFACE), replace=_range(random, log, seq))
    if kind < 0.35:
        return Record(seq, EventType.REWIND, rewind_to=_target(random, log, seq))
    if kind < 0.45:
        return Record(seq, random.choice(BOOKKEEPING))
    return Record(seq, random.choice(SURFACE))


def _range(random: Random, log: Sequence[Record], seq: int) -> PositionRange:
    """Mostly begin at a replace or an event that stands somewhere, so that ranges meet."""
    stands = [r.position for r in log if r.replace is not None] or [r.position for r in log]
    start = random.choice(stands) if stands and random.random() < 0.6 else random.randrange(seq)
    return PositionRange(start, min(seq - 1, start + random.choice((0, 1, 2, 5, 20))))


def _target(random: Random, log: Sequence[Record], seq: int) -> int:
    """Any seq before, gaps and undone parts included, or -1."""
    rewinds = [r for r in log if r.rewind_to is not None]
    if rewinds and random.random() < 0.3:
        undoer = random.choice(rewinds)
        assert undoer.rewind_to is not None
        return random.randint(undoer.rewind_to, undoer.seq - 1)
    return random.randint(-1, seq - 1)


def fold(active: Sequence[Record]) -> list[Record]:
    """Return the surface of an active log, kept up event by event."""
    surface: Surface[Record] = Surface()
    for record in active:
        take(surface, record)
    return list(surface)


def take(surface: Surface[Record], record: Record) -> None:
    """Take one event that is no rewind into a surface."""
    if record.replace is not None:
        surface.replace(record, record.replace.stop)
    elif record.is_surface:
        surface.insert(record)


def state(log: Sequence[Record], seq: int) -> list[Record]:
    """Return the active log right after a seq."""
    return active_by_definition([record for record in log if record.seq <= seq])


def dropped(log: Sequence[Record]) -> set[int]:
    """Return the seqs of what a snapshot at the head drops: surface events that do not count."""
    live = {record.seq for record in surface_by_definition(active_by_definition(log))}
    return {record.seq for record in log if record.is_surface and record.seq not in live}


def traits(log: Sequence[Record]) -> Counter[str]:
    """Count in a log what folds find hard."""
    seen: Counter[str] = Counter()
    seqs = {record.seq for record in log}
    for index, record in enumerate(log):
        before = log[:index]
        if before and record.seq > before[-1].seq + 1:
            seen["gap"] += 1
        if record.replace is not None:
            seen.update(_replace_traits(before, record.replace))
        if record.rewind_to is not None:
            seen.update(_rewind_traits(before, record.rewind_to, seqs))
    return seen


def _replace_traits(before: Sequence[Record], range_: PositionRange) -> list[str]:
    surface = surface_by_definition(active_by_definition(before))
    covered = [r for r in surface if range_.start <= r.position <= range_.stop]
    if not covered:
        return ["replace of nothing"]
    over = any(r.replace is not None for r in covered)
    return ["replace over replace"] if over else ["replace"]


def _rewind_traits(before: Sequence[Record], to_seq: int, seqs: set[int]) -> list[str]:
    names = ["rewind"]
    if to_seq == -1:
        return [*names, "rewind to nothing"]
    if to_seq not in seqs:
        names.append("rewind into a gap")
    rewinds = [record for record in before if record.rewind_to is not None]
    if any(record.seq > to_seq for record in rewinds):
        names.append("rewind over a rewind")
    if any(record.seq <= to_seq for record in rewinds):
        names.append("rewind to after a rewind")
    kept = [record for record in before if record.seq <= to_seq and record.rewind_to is None]
    if kept and kept[-1] not in active_by_definition(before):
        names.append("rewind into an undone part")
    return names
