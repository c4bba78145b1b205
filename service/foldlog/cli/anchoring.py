"""`foldlog signing-key` and `anchor`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from foldlog.cli.connection import connected
from foldlog.cli.options import Address
from foldlog.cli.outcome import CommandError, Outcome

if TYPE_CHECKING:
    from foldlog.client.values import SessionHead
    from foldlog.core.anchor import Anchor

BLOCK = 64 * 1024


def signing_key(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to; it must not exist.")],
) -> None:
    """Make a key that heads are signed with. Its public part goes to FILE.pub.

    FILE is for the service (FOLDLOG_SIGNING_KEY_FILE) and nobody else; FILE.pub is for whoever
    verifies. To rotate, serve with a new key and keep the old FILE.pub.
    """
    try:
        from foldlog.signing import SigningKey
    except ImportError as error:
        raise CommandError(f"{error}.") from None
    path, public = Path(file), Path(f"{file}.pub")
    try:
        if public.exists():
            raise FileExistsError
        made = SigningKey.make(path)
        public.write_bytes(made.public_text())
    except FileExistsError:
        raise CommandError(f"{file} or {public} exists; a key is never overwritten.") from None
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}.") from None
    typer.echo(made.key_id.hex())


def anchor(
    session: Annotated[
        str | None,
        typer.Argument(metavar="[SESSION]", help="Only this one. Unset: all, deleted ones too."),
    ] = None,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="FILE",
            help="Append to FILE, only what is new since the last line; -: stdout, all.",
        ),
    ] = "-",
    address: Address = "",
) -> None:
    """Write signed heads as JSON Lines, to be kept where who writes to the database does not.

    `foldlog verify --anchors FILE` finds with them what no chain can: an end that was cut off, a
    store that was rolled back, a log that was written anew.
    """
    with connected(address, patient=True) as client, _anchors(to) as (target, last):
        cursor = "" if session or last is None else last.cursor
        found = client.heads(session, after_cursor=cursor, sign=True)
        count, damaged = _write(found, target, last)
    typer.echo(f"{count} anchors", err=True)
    if damaged:
        raise typer.Exit(Outcome.FINDING)


def _write(heads: Iterable[SessionHead], target: BinaryIO, last: Anchor | None) -> tuple[int, int]:
    """Write the heads and return how many were written, and how many could not be."""
    from foldlog.cli.terminal import printable

    count = damaged = 0
    for head in heads:
        if last is not None and head.anchor.tenant != last.tenant:
            raise CommandError("these are anchors of another tenant; name another file.")
        if head.damage:
            damaged += 1
            told = f"{head.anchor.session_id} is not anchored: {head.damage}"
            typer.echo(printable(f"foldlog: {told}. See: foldlog verify"), err=True)
            continue
        target.write(head.anchor.line().encode())
        count += 1
    return count, damaged


@contextmanager
def _anchors(path: str) -> Iterator[tuple[BinaryIO, Anchor | None]]:
    """Lend stdout, or a file to append to with the last anchor in it that has a cursor."""
    if path == "-":
        yield sys.stdout.buffer, None
        sys.stdout.buffer.flush()
        return
    try:
        with open(path, "a+b") as file:
            _drop_torn_line(file)
            yield file, _last(file)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}.") from None


def _drop_torn_line(file: BinaryIO) -> None:
    """Take away what a run that was cut short left of its last line: it is written again."""
    end = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - BLOCK)
        file.seek(start)
        newline = file.read(end - start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    file.truncate(end)


def _last(file: BinaryIO) -> Anchor | None:
    """Return the last anchor that has a cursor."""
    from foldlog.core.anchor import anchor_of

    file.seek(0)
    line = b""
    for each in file:
        if b'"cursor":' in each:
            line = each
    try:
        return anchor_of(line.decode()) if line else None
    except ValueError as error:
        raise CommandError(f"{file.name} holds a line that is no anchor: {error}.") from None
