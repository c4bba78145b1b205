"""Suggesting a range of the surface that a replace can take."""

from __future__ import annotations

from dataclasses import dataclass

from foldlog.application.fold import Fold
from foldlog.application.readers import Readers
from foldlog.application.reading import Reading
from foldlog.core.errors import EntryNotLiveError, InvalidFieldError
from foldlog.core.ranges import IndexRange, nearest_range
from foldlog.core.recovery import interrupted_from


@dataclass(frozen=True, slots=True)
class SuggestedRange:
    """Two live entries, where they stand, and how many messages there are from one to the other."""

    first_seq: int
    last_seq: int
    start: int
    stop: int
    count: int


class Ranges:
    """Suggests ranges."""

    def __init__(self, reading: Reading, readers: Readers) -> None:
        self._reading = reading
        self._readers = readers

    async def suggest(
        self, session_id: str, first_seq: int, last_seq: int
    ) -> tuple[SuggestedRange | None, int]:
        """Return the range nearest to two live entries, None if there is none, and next_seq."""
        folded = await self._reading.fold(session_id)
        asked = _asked(folded.fold, first_seq, last_seq)
        entries, open_at = tuple(folded.fold.surface), open_turn_at(folded.fold)
        found = await self._readers.run(nearest_range, entries, asked, open_at)
        if found is None:
            return None, folded.next_seq
        first, last = entries[found.first], entries[found.last]
        count = found.last - found.first + 1
        suggested = SuggestedRange(first.seq, last.seq, first.position, last.position, count)
        return suggested, folded.next_seq


def _asked(fold: Fold, first_seq: int, last_seq: int) -> IndexRange:
    first, last = fold.surface.index_of(first_seq), fold.surface.index_of(last_seq)
    if first is None or last is None:
        raise EntryNotLiveError(seq=first_seq if first is None else last_seq)
    if first > last:
        wrong = f"entry {first_seq} stands after entry {last_seq} on the surface"
        raise InvalidFieldError.of("entries", wrong)
    return IndexRange(first, last)


def open_turn_at(fold: Fold) -> int | None:
    """Return the index of the first entry of what is open, or None where all is closed."""
    from_seq = interrupted_from(fold.turns)
    return None if from_seq is None else fold.surface.covered(from_seq, fold.next_seq).start
