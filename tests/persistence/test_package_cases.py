"""The package's own test cases, on every recorder of ours and every kind of store."""

from __future__ import annotations

from collections.abc import Iterator

from tests.persistence import cases
from tests.persistence.stores import BACKENDS


def _fitted() -> Iterator[tuple[str, type]]:
    for case in cases.CASES:
        for backend in BACKENDS:
            name = f"Test{case.__name__}On{backend.title().replace('-', '')}"
            yield name, type(name, (case,), {"backend": backend, "__module__": __name__})


globals().update(_fitted())
