"""A bar on stderr for work that counts things."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(what: str, total: int | None, quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """Show a bar while the block runs, and lend what moves it on. Only a terminal gets one."""
    if quiet or not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from foldlog.cli.terminal import notes

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    bar = Progress(*columns, console=notes(), transient=True)
    with bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.advance(task, count)
