"""What processes cost, as Linux tells it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

PROC: Final = Path("/proc")
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


class Spent(NamedTuple):
    """A process's parent, and the CPU seconds of its threads and of its children that ended."""

    parent: int
    own_s: float
    ended_s: float


def spent(pid: int) -> Spent:
    """Return what a process has spent. Raises OSError if there is none.

    Fields as in proc(5): the program's name, which may hold anything, ends at the last bracket.
    """
    fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    user, system, ended_user, ended_system = (int(each) / TICKS_PER_S for each in fields[11:15])
    return Spent(int(fields[1]), user + system, ended_user + ended_system)


def cpu_s(pid: int) -> float:
    """Return the CPU seconds of one process."""
    return spent(pid).own_s


def family_cpu_s(parent: int) -> float:
    """Return the CPU seconds of a process and of its children, those that ended too."""
    first = spent(parent)
    children = (each for each in _others() if each.parent == parent)
    return first.own_s + first.ended_s + sum(each.own_s for each in children)


def _others() -> Iterator[Spent]:
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                yield spent(int(entry.name))
            except OSError:
                continue


def resident_bytes(pid: int) -> int:
    """Return the memory that a process has in RAM."""
    pages = (PROC / str(pid) / "statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
