"""`foldlog export` and `import`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, cast

import typer

from foldlog.cli.connection import connected
from foldlog.cli.options import Address, AsJson, RequestId, SessionId
from foldlog.cli.outcome import CommandError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]


class CountedFile:
    """A file that tells how many bytes and lines have gone through it."""

    def __init__(self, file: BinaryIO, told: Callable[[int, int], None]) -> None:
        self._file = file
        self._told = told

    def write(self, data: bytes) -> int:
        """Write all of it."""
        self._file.write(data)
        self._told(len(data), data.count(b"\n"))
        return len(data)

    def read(self, size: int = -1) -> bytes:
        """Read up to so many bytes."""
        data = self._file.read(size)
        self._told(len(data), data.count(b"\n"))
        return data

    def seekable(self) -> bool:
        """Tell that there is no way back."""
        return False


def counted(file: BinaryIO, told: Callable[[int, int], None]) -> BinaryIO:
    """Return a file as far as the client uses one: for writing or reading once through."""
    return cast(BinaryIO, CountedFile(file, told))


def export(
    session: SessionId,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to; -: stdout.")] = "-",
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE.")] = False,
    quiet: Quiet = False,
    address: Address = "",
) -> None:
    """Write a session's whole log as JSON Lines. A fork exports whole."""
    with (
        connected(address) as client,
        _written(file, force) as target,
        _progress(f"exporting {session}", None, quiet) as told,
    ):
        client.session(session).export(counted(target, told))


@contextmanager
def _written(path: str, force: bool) -> Iterator[BinaryIO]:
    """Lend stdout, or a file that is there under its name once it is whole."""
    if path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    if target.exists() and not force:
        raise CommandError(f"{path} exists; give --force to overwrite it.")
    part = target.with_name(f"{target.name}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(target)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)


def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What export wrote; -: stdin.")],
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="SESSION", help="The new id. Unset: the one in FILE."),
    ] = None,
    request_id: RequestId = None,
    quiet: Quiet = False,
    address: Address = "",
    as_json: AsJson = False,
) -> None:
    """Make a session from an exported log, all of it or nothing."""
    from foldlog.cli.terminal import print_json, printable

    with (
        connected(address) as client,
        _readable(file) as (source, size),
        _progress("importing", size, quiet) as told,
    ):
        made = client.import_session(
            counted(source, told), session_id=session, request_id=request_id
        )
    if as_json:
        print_json({"session_id": made.session_id, "next_seq": made.next_seq})
    else:
        typer.echo(printable(made.session_id))


@contextmanager
def _readable(path: str) -> Iterator[tuple[BinaryIO, int | None]]:
    """Lend a file and its size, or stdin, whose size nobody knows."""
    if path == "-":
        yield sys.stdin.buffer, None
        return
    try:
        with Path(path).open("rb") as file:
            yield file, Path(path).stat().st_size
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from None


@contextmanager
def _progress(what: str, size: int | None, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Lend what takes bytes and events as they pass, shown as a bar on stderr if that is a tty."""
    from foldlog.cli.terminal import notes, printable

    console = notes()
    if quiet or not console.is_terminal:
        yield lambda size, lines: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[events]:,} events"),
        TransferSpeedColumn(),
        console=console,
        transient=True,
    )
    with bar:
        yield _teller(bar, bar.add_task(printable(what), total=size, events=0))


def _teller(bar: Progress, task: TaskID) -> Callable[[int, int], None]:
    # The first line is the header.
    events = -1

    def told(size: int, lines: int) -> None:
        nonlocal events
        events += lines
        bar.update(task, advance=size, events=max(0, events))

    return told
