"""`foldlog attach`: put, get and collect."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from foldlog.cli.connection import connected
from foldlog.cli.options import Address, AsJson
from foldlog.cli.outcome import CommandError
from foldlog.cli.transfer import written

Digest = Annotated[str, typer.Argument(metavar="SHA256", help="64 hexadecimal digits.")]


def put(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What to store; -: stdin.")],
    media_type: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="A media type, for its form only.")
    ] = "",
    address: Address = "",
    as_json: AsJson = False,
) -> None:
    """Store a file's bytes and print their SHA-256. Storing them again heals them."""
    from foldlog.cli.terminal import print_json

    with connected(address) as client, _readable(file) as source:
        stored = client.put_attachment(source, media_type)
    if as_json:
        about = {"size_bytes": stored.size_bytes, "existed": stored.existed}
        print_json({"sha256": stored.sha256.hex(), **about})
    else:
        typer.echo(stored.sha256.hex())


@contextmanager
def _readable(path: str) -> Iterator[BinaryIO]:
    if path == "-":
        yield sys.stdin.buffer
        return
    try:
        with Path(path).open("rb") as file:
            yield file
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from None


def get(
    sha256: Digest,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to; -: stdout.")] = "-",
    offset: Annotated[int, typer.Option(min=0, help="The first byte.")] = 0,
    length: Annotated[int, typer.Option(min=0, help="How many bytes; 0: all that follow.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE.")] = False,
    address: Address = "",
) -> None:
    """Write stored bytes to a file, verified."""
    digest = _digest(sha256)
    with connected(address) as client, written(file, force) as target:
        client.get_attachment(digest, target, offset=offset, length=length)


def _digest(digits: str) -> bytes:
    try:
        digest = bytes.fromhex(digits)
    except ValueError:
        digest = b""
    if len(digest) != 32:
        raise typer.BadParameter("it is not 64 hexadecimal digits", param_hint="SHA256")
    return digest


def collect(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be deleted.")
    ] = False,
    grace_s: Annotated[
        int | None,
        typer.Option("--grace-s", min=0, metavar="S", help="Keep what was put less than this ago."),
    ] = None,
    address: Address = "",
    as_json: AsJson = False,
) -> None:
    """Delete the attachments that no stored event of any session or fork names."""
    from foldlog.cli.terminal import print_json

    with connected(address) as client:
        found = client.collect_attachments(dry_run=dry_run, grace_s=grace_s)
    if as_json:
        print_json(
            {
                "collected_count": found.collected_count,
                "collected_bytes": found.collected_bytes,
                "examined_count": found.examined_count,
            }
        )
        return
    done = "would delete" if dry_run else "deleted"
    typer.echo(
        f"{done} {found.collected_count:,} of {found.examined_count:,} attachments,"
        f" {found.collected_bytes:,} bytes"
    )


COMMANDS = (put, get, collect)

attach = typer.Typer(help="Attachments: bytes of any size, stored once under their SHA-256.")
for _command in COMMANDS:
    attach.command()(_command)
