"""The package's own test cases, on every recorder of ours and every kind of store."""

from __future__ import annotations

from tests.persistence import cases
from tests.persistence.stores import BACKENDS


def _on(case: type, backend: str) -> type:
    name = f"Test{case.__name__}On{backend.title().replace('-', '')}"
    return type(name, (case,), {"backend": backend, "__module__": __name__})


globals().update(
    {
        f"Test{n}": _on(*pair)
        for n, pair in enumerate((case, backend) for case in cases.CASES for backend in BACKENDS)
    }
)
