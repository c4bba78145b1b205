"""What is measured: each module one part of the goals."""

from __future__ import annotations

from typing import Final

from bench.experiments import appending

ALL: Final = (*appending.EXPERIMENTS,)
