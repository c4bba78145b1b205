"""Lists of messages as a surface, so that what pairs them can be asked in short."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from foldlog.core.mentions import Mentions
from foldlog.core.pairing import Speaking


@dataclass(frozen=True, slots=True)
class Placed:
    """A message, and where it stands."""

    position: int
    seq: int
    role: int
    call_ids: tuple[str | None, ...] = ()
    tool_call_id: str | None = None


def placed(item: Speaking, position: int, seq: int | None = None) -> Placed:
    """Return a message at a position; its seq is the same unless given."""
    seq = position if seq is None else seq
    return Placed(position, seq, item.role, item.call_ids, item.tool_call_id)


def surface_of(items: Iterable[Speaking]) -> list[Placed]:
    """Return messages as a surface on which nothing was replaced."""
    return [placed(item, index) for index, item in enumerate(items)]


def unpaired_by(
    before: Sequence[Speaking], shadowed: slice, replacement: Speaking
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what the mentions of a list find of a replace of a slice of it."""
    surface = surface_of(before)
    new = placed(replacement, shadowed.start, len(surface))
    return Mentions(surface).unpaired_by(surface[shadowed], shadowed.stop - 1, new)
