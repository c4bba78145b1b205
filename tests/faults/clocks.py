"""Clocks of servers that can be set while they run.

A server loads tests/cases/shifted_clock.py as its sitecustomize, which puts an offset to the wall
clock as Python tells it: that is every time the service takes. Monotonic clocks, the database's
clock and the file system's stand, as they do where one machine's clock is set.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Final

from tests.served import ROOT

HOUR_MS: Final = 3_600_000


class Clock:
    """The wall clock of one server's processes."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        shutil.copy(ROOT / "tests/cases/shifted_clock.py", directory / "sitecustomize.py")
        self._offset = directory / "offset"
        self._directory = directory

    @property
    def environment(self) -> dict[str, str]:
        """What a server's environment needs for it."""
        return {"PYTHONPATH": str(self._directory), "CLOCK_OFFSET_FILE": str(self._offset)}

    def set(self, hours: float) -> None:
        """Put it this far from the true time: forward, or back where negative."""
        part = self._offset.with_suffix(".part")
        part.write_text(str(round(hours * HOUR_MS)))
        part.replace(self._offset)

    def jump(self, random: Random) -> None:
        """Put it anywhere within twelve hours of the true time."""
        self.set(random.uniform(-12, 12))
