"""The core imports the standard library and itself, and nothing with a clock, chance or I/O."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import foldlog.core
import pytest

CORE = Path(foldlog.core.__file__).parent
MODULES = sorted(CORE.rglob("*.py"))
IMPURE = {
    *(
        "asyncio",
        "datetime",
        "io",
        "logging",
        "multiprocessing",
        "os",
        "pathlib",
        "queue",
        "random",
    ),
    *("secrets", "selectors", "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess"),
    *("tempfile", "threading", "time", "urllib", "uuid", "zoneinfo"),
}
IMPURE_CALLS = {"open", "print", "input", "exec", "eval", "__import__"}


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module or ""


def allowed(name: str) -> bool:
    top = name.partition(".")[0]
    return name.startswith("foldlog.core.") or (top in sys.stdlib_module_names - IMPURE)


def test_the_core_is_there() -> None:
    names = {path.stem for path in MODULES}
    assert names >= {"surface", "active", "invariant", "canonical", "header", "turns", "errors"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_module_of_the_core_imports_nothing_else(path: Path) -> None:
    assert [name for name in imported(ast.parse(path.read_text())) if not allowed(name)] == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_module_of_the_core_does_no_io(path: Path) -> None:
    calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    names = {call.func.id for call in calls if isinstance(call.func, ast.Name)}
    assert names & IMPURE_CALLS == set()


@pytest.mark.parametrize("name", ["os", "time", "grpc", "foldlog.v1.event_pb2", "random"])
def test_the_walk_would_find(name: str) -> None:
    found = list(imported(ast.parse(f"import {name}\nfrom {name} import x")))
    assert found == [name, name]
    assert not allowed(name)
