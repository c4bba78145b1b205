"""The fuzzer's targets: their corpus, changes of it by a fixed seed, and what was found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.mutations import inputs
from tests.fuzz.targets import TARGETS

CRASHERS = Path(__file__).parents[1] / "fuzz" / "crashers"
COUNT = 60


@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes_are_taken_or_refused(name: str) -> None:
    target = TARGETS[name]
    for data in inputs(list(target.corpus()), name, COUNT):
        target.run(data)


def test_what_was_found_stays_mended() -> None:
    for path in sorted(CRASHERS.glob("*/*")):
        TARGETS[path.parent.name].run(path.read_bytes())
