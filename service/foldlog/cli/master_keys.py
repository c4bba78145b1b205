"""`foldlog master-key`: make one, see which are in use, and wrap every data key by the first."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from foldlog.cli.options import AsJson
from foldlog.cli.outcome import CommandError, Outcome
from foldlog.cli.serving import database_trouble, settings_from

if TYPE_CHECKING:
    from foldlog.encryption.master_keys import MasterKeys
    from foldlog.persistence.store import Store

DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="The database. Unset: the configured one.", show_default=False
    ),
]
KeyFile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="The master keys. Unset: the configured ones.", show_default=False
    ),
]


def new(
    key_id: Annotated[
        str,
        typer.Argument(metavar="[ID]", help="Its name; unset: one is made.", show_default=False),
    ] = "",
) -> None:
    """Print a new master key, as a line of a file of master keys. Nobody else has it."""
    from foldlog.persistence.errors import crypto_extra

    try:
        with crypto_extra():
            from foldlog.encryption.master_keys import new_line
        typer.echo(new_line(key_id or f"key-{secrets.token_hex(4)}"))
    except ValueError as error:
        raise CommandError(str(error)) from None


def list_(
    database_url: DatabaseUrl = None, master_key_file: KeyFile = None, as_json: AsJson = False
) -> None:
    """Say how many data keys each master key wraps, and which of them are missing here."""
    from foldlog.cli.terminal import print_json
    from foldlog.encryption.rotation import in_use

    with _opened(database_url, master_key_file) as (store, masters):
        rows = [
            {
                "key_id": each.key_id,
                "sessions": each.sessions,
                "attachments": each.attachments,
                "is_current": masters is not None and each.key_id == masters.current_id,
                "is_missing": masters is None or not masters.has(each.key_id),
            }
            for each in in_use(store)
        ]
    for row in rows:
        if as_json:
            print_json(row)
        else:
            mark = (
                " (missing here)" if row["is_missing"] else " (current)" * bool(row["is_current"])
            )
            counts = f"{row['sessions']:,} sessions, {row['attachments']:,} attachments"
            typer.echo(f"{row['key_id']}: {counts}{mark}")
    if any(row["is_missing"] for row in rows):
        raise typer.Exit(Outcome.FINDING)


def rotate(database_url: DatabaseUrl = None, master_key_file: KeyFile = None) -> None:
    """Wrap every data key by the first master key. Events are not touched; run it at any time."""
    from foldlog.cli.progress import progress
    from foldlog.encryption.opening import WHERE
    from foldlog.encryption.rotation import in_use
    from foldlog.encryption.rotation import rotate as rotated_by

    with _opened(database_url, master_key_file) as (store, masters):
        if masters is None:
            raise CommandError(
                f"no master keys are set: name a file --master-key-file, or set {WHERE}"
            )
        others = [each for each in in_use(store) if each.key_id != masters.current_id]
        total = sum(each.sessions + each.attachments for each in others)
        with progress("wrapping keys", total) as advance:
            rotated = rotated_by(store, masters, advance)
    typer.echo(
        f"wrapped {rotated.sessions:,} keys of sessions and {rotated.attachments:,} of attachments"
        f" by {masters.current_id}"
    )
    if rotated.damaged:
        typer.echo(f"{rotated.damaged:,} wrapped keys are damaged and stay as they are", err=True)
        raise typer.Exit(Outcome.FINDING)


@contextmanager
def _opened(
    database_url: str | None, master_key_file: str | None
) -> Iterator[tuple[Store, MasterKeys | None]]:
    """Lend the database, as it is stored, and the master keys."""
    from eventsourcing.persistence import PersistenceError

    from foldlog.encryption.opening import master_keys_of
    from foldlog.persistence.store import open_store

    settings = settings_from({"database_url": database_url, "master_key_file": master_key_file})
    try:
        masters = master_keys_of(settings)
        store = open_store(settings.database_url, object_directory=settings.object_directory)
        try:
            yield store, masters
        finally:
            store.close()
    except (PersistenceError, ValueError, ImportError, OSError) as error:
        raise database_trouble(error) from None


COMMANDS = (new, list_, rotate)

master_key = typer.Typer(help="Master keys, under which what is stored is encrypted.")
for _command in COMMANDS:
    master_key.command(_command.__name__.strip("_"))(_command)
