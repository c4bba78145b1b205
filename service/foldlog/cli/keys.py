"""`foldlog keys`: make, list and revoke API keys, on the database itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from foldlog.cli.options import AsJson, Labels, parsed_labels
from foldlog.cli.outcome import CommandError
from foldlog.cli.serving import DatabaseUrl, database_trouble, settings_from
from foldlog.cli.sessions import parsed_time, with_zone
from foldlog.core.role import Role

if TYPE_CHECKING:
    from foldlog.persistence.keys import KeyRow
    from foldlog.persistence.store import Store

Expires = Annotated[
    datetime | None,
    typer.Option(
        metavar="TIME", parser=parsed_time, help="When it ends, in UTC unless it says otherwise."
    ),
]
COLUMNS = ("ID", "TENANT", "ROLE", "STATE", "NAME", "CREATED", "EXPIRES", "LABELS")


@contextmanager
def database(url: str | None) -> Iterator[Store]:
    """Lend the database that is named, or the configured one; a service may be using it.

    Raises CommandError where it cannot be used.
    """
    from eventsourcing.persistence import PersistenceError

    from foldlog.persistence.beside import open_beside

    try:
        store = open_beside(settings_from({"database_url": url}))
    except (PersistenceError, ValueError, OSError, ImportError) as error:
        raise database_trouble(error) from None
    try:
        yield store
    except PersistenceError as error:
        raise database_trouble(error) from None
    finally:
        store.close()


def create(
    role: Annotated[str, typer.Option(metavar="reader|writer|admin", help="What it may do.")],
    tenant: Annotated[str, typer.Option(metavar="TENANT", help="Whose sessions.")] = "default",
    label: Labels = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="What it is for.")] = "",
    expires: Expires = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Make a key and print it, this once: only the SHA-256 of its secret is kept.

    With labels it reaches only sessions that bear them all.
    """
    from foldlog.application.keyring import new_key

    until = with_zone(expires)
    expires_ns = int(until.timestamp()) * 1_000_000_000 if until else None
    key, row = new_key(tenant, _role(role), parsed_labels(label), name, expires_ns)
    with database(database_url) as store:
        _audited(store, "CreateKey", row, lambda: store.keys.insert(row))
    typer.echo(key.text)
    typer.echo("Keep it now: it is not shown again. A service takes it with --auth keys.", err=True)


def _role(name: str) -> Role:
    try:
        return Role.of(name)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--role") from None


def list_(
    tenant: Annotated[str | None, typer.Option(metavar="TENANT", help="Only this one's.")] = None,
    database_url: DatabaseUrl = None,
    as_json: AsJson = False,
) -> None:
    """List keys, the oldest first, revoked and expired ones too."""
    from foldlog.cli.terminal import print_json_lines

    with database(database_url) as store:
        rows = store.keys.all(tenant)
    if as_json:
        print_json_lines(map(_document, rows))
    else:
        _print_table(rows)


def _document(row: KeyRow) -> dict[str, object]:
    return {
        "id": row.key_id,
        "tenant": row.tenant,
        "role": row.role,
        "labels": dict(row.labels),
        "name": row.name,
        "state": _state(row),
        "created_ns": row.created_ns,
        "expires_ns": row.expires_ns,
        "revoked_ns": row.revoked_ns,
    }


def _print_table(rows: Sequence[KeyRow]) -> None:
    from rich.table import Table

    from foldlog.cli.terminal import printable, put

    if not rows:
        typer.echo("no keys", err=True)
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in COLUMNS:
        table.add_column(column, overflow="fold")
    for row in rows:
        labels = " ".join(f"{key}={value}" for key, value in sorted(row.labels.items()))
        times = _date(row.created_ns), _date(row.expires_ns)
        cells = (row.key_id, row.tenant, row.role, _state(row), row.name, *times, labels)
        table.add_row(*map(printable, cells))
    put(table)


def _state(row: KeyRow) -> str:
    if row.revoked_ns is not None:
        return "revoked"
    is_over = row.expires_ns is not None and row.expires_ns <= time.time_ns()
    return "expired" if is_over else "valid"


def _date(ns: int | None) -> str:
    return "" if ns is None else datetime.fromtimestamp(ns // 1_000_000_000, UTC).date().isoformat()


def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="As `foldlog keys list` shows it.")],
    database_url: DatabaseUrl = None,
) -> None:
    """Revoke a key for good. Services stop taking it within FOLDLOG_KEY_REVOCATION_S."""
    from foldlog.application import keyring
    from foldlog.core.errors import InvalidFieldError

    with database(database_url) as store:
        try:
            row = keyring.revocable(store.keys, key_id)
        except InvalidFieldError as error:
            raise CommandError(f"{error.fields['id']}.") from None
        _audited(store, "RevokeKey", row, lambda: keyring.revoke(store.keys, row))
    typer.echo(f"revoked {row.key_id}, of tenant {row.tenant}")


def _audited(store: Store, act: str, row: KeyRow, do: Callable[[], object]) -> None:
    on = {"key": row.key_id, "role": row.role, "labels": dict(row.labels), "name": row.name}
    in_audit_log(store, row.tenant, act, on, do)


def in_audit_log(
    store: Store, tenant: str, act: str, on: Mapping[str, object], do: Callable[[], object]
) -> None:
    """Do something, and let the audit log of a tenant have it."""
    import asyncio

    from foldlog.application.application import SessionApplication
    from foldlog.application.audit import Act, AuditLog
    from foldlog.encryption.opening import with_encryption

    settings = settings_from({})
    try:
        written = with_encryption(store, settings)
    except ValueError as error:
        raise CommandError(f"{error}.") from None

    async def noted() -> None:
        app = SessionApplication(written, settings)
        try:
            async with AuditLog(app.tenant).of(tenant, Act(act, operator(), on)):
                do()
        finally:
            await app.stop()

    asyncio.run(noted())


def operator() -> str:
    """Return who runs this command, as far as the machine knows."""
    from getpass import getuser
    from platform import node

    try:
        user = getuser()
    except (OSError, KeyError):
        user = "somebody"
    return f"{user}@{node()}"


COMMANDS: Mapping[str, Callable[..., None]] = {"create": create, "list": list_, "revoke": revoke}

keys = typer.Typer(help="API keys: who may call, made and revoked on the database itself.")
for _name, _command in COMMANDS.items():
    keys.command(_name)(_command)
