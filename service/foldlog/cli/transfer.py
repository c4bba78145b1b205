"""`foldlog export` and `import`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, cast

import typer

from foldlog.cli.connection import connected
from foldlog.cli.options import Address, AsJson, RequestId, SessionId
from foldlog.cli.outcome import CommandError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from foldlog.importers import Outcome

NOTES_SHOWN = 20


class FormatName(StrEnum):
    """What a file may be; apart from the importers' own, which take time to load."""

    AUTO = "auto"
    FOLDLOG = "foldlog"
    OPENAI = "openai"
    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    DSH = "dsh"
    NOUS = "nous"


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
    attachments: Annotated[
        bool, typer.Option("--attachments", help="The bytes of attachments too.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE.")] = False,
    quiet: Quiet = False,
    address: Address = "",
) -> None:
    """Write a session's whole log as JSON Lines. A fork exports whole."""
    with (
        connected(address) as client,
        written(file, force) as target,
        _progress(f"exporting {session}", None, quiet) as told,
    ):
        exported = client.session(session)
        exported.export(counted(target, told), with_attachments=attachments)


@contextmanager
def written(path: str, force: bool) -> Iterator[BinaryIO]:
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
    file: Annotated[str, typer.Argument(metavar="FILE", help="What to read; -: stdin.")],
    format_: Annotated[
        FormatName, typer.Option("--format", help="What FILE is; auto: what it looks like.")
    ] = FormatName.AUTO,
    session: Annotated[
        str | None,
        typer.Option("--session", metavar="SESSION", help="The new id. Unset: the one in FILE."),
    ] = None,
    salvage: Annotated[
        bool, typer.Option("--salvage", help="Take what is certain of a damaged file.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be made; write nothing.")
    ] = False,
    request_id: RequestId = None,
    quiet: Quiet = False,
    address: Address = "",
    as_json: AsJson = False,
) -> None:
    """Make a session from an export or another system's file, all of it or nothing.

    The same file under the same id is imported once, however often this is run.
    """
    from foldlog.importers import Format, Import, UnreadableFileError

    try:
        with (
            _readable(file) as (source, size),
            _progress("importing", size, quiet) as told,
        ):
            work = Import(
                source, Format(format_.value), session, salvage, lambda size: told(size, 1)
            )
            if dry_run:
                outcome = work.dry_run()
            else:
                with connected(address) as client:
                    outcome = work.run(client, request_id)
    except UnreadableFileError as error:
        raise CommandError(f"{file} cannot be imported: {error}.") from None
    if as_json:
        _print_json(outcome, dry_run)
    else:
        _print(outcome, dry_run)


def _print_json(outcome: Outcome, dry_run: bool) -> None:
    from foldlog.cli.terminal import print_json

    print_json(
        {
            "session_id": outcome.session_id,
            "next_seq": outcome.next_seq,
            "dry_run": dry_run,
            "was_there": outcome.was_there,
            "report": outcome.report.document(),
        }
    )


def _print(outcome: Outcome, dry_run: bool) -> None:
    """Print the id to stdout, for the next command, and the report to stderr, for people."""
    from foldlog.cli.terminal import printable

    typer.echo(printable(outcome.session_id))
    for line in _report_lines(outcome, dry_run):
        typer.echo(printable(line), err=True)


def _report_lines(outcome: Outcome, dry_run: bool) -> Iterator[str]:
    report = outcome.report
    read = ", ".join(f"{count:,} {name}" for name, count in report.read.most_common())
    yield f"{report.format}: {report.lines:,} lines read: {read}"
    if report.made:
        made = ", ".join(f"{count:,} {name}" for name, count in report.made.most_common())
        yield f"events: {made}"
    for note in report.notes[:NOTES_SHOWN]:
        yield f"{note.kind}: {note}"
    if hidden := report.noted.total() - min(len(report.notes), NOTES_SHOWN):
        yield f"and {hidden:,} more notes: --json lists the first 1,000"
    if outcome.was_there:
        yield "it was imported before: nothing was changed"
    if dry_run:
        yield f"dry run: nothing was written; next_seq would be {outcome.next_seq:,}"


@contextmanager
def _readable(path: str) -> Iterator[tuple[BinaryIO, int | None]]:
    """Lend a file and its size; stdin is copied to one, since files are read more than once."""
    try:
        if path == "-":
            with tempfile.TemporaryFile() as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
                yield cast(BinaryIO, copy), copy.tell()
            return
        with Path(path).open("rb") as file:
            size = file.seek(0, 2)
            yield file, size
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror or error}") from None


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
