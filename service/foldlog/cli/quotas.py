"""`foldlog quotas`: how much tenants may use, and what they do, on the database itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Annotated, Any

import typer

from foldlog.cli.keys import database, in_audit_log
from foldlog.cli.options import AsJson
from foldlog.cli.serving import DatabaseUrl

Tenant = Annotated[str, typer.Argument(metavar="TENANT", help="Whose.")]
Limit = Annotated[int | None, typer.Option(min=-1, metavar="N")]
DEFAULT = -1
LIMITS = ("sessions", "bytes", "calls_per_s", "watches")
COLUMNS = ("TENANT", "SESSIONS", "OF", "BYTES", "OF", "CALLS/S", "WATCHES")


def show(database_url: DatabaseUrl = None, as_json: AsJson = False) -> None:
    """Show what each tenant has, and may have by quotas of its own; others have the settings'."""
    from foldlog.cli.terminal import print_json_lines

    with database(database_url) as store:
        found = [
            {
                "tenant": tenant,
                "used": asdict(store.quotas.usage(tenant)),
                "quotas": asdict(store.quotas.find(tenant)),
            }
            for tenant in store.quotas.tenants()
        ]
    if as_json:
        print_json_lines(found)
    else:
        _print_table(found)


def _print_table(found: Sequence[dict[str, Any]]) -> None:
    from rich.table import Table

    from foldlog.cli.terminal import printable, put

    if not found:
        typer.echo("no tenants", err=True)
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for number, column in enumerate(COLUMNS):
        table.add_column(column, justify="right" if number else "left", overflow="fold")
    for each in found:
        used, quotas = each["used"], each["quotas"]
        limits = {name: _limit(quotas[name]) for name in LIMITS}
        table.add_row(
            printable(each["tenant"]),
            f"{used['sessions']:,}",
            limits["sessions"],
            f"{used['bytes']:,}",
            limits["bytes"],
            limits["calls_per_s"],
            limits["watches"],
        )
    put(table)


def _limit(quota: int | None) -> str:
    if quota is None:
        return "default"
    return f"{quota:,}" if quota else "any"


def set_(
    tenant: Tenant,
    sessions: Limit = None,
    bytes_: Annotated[int | None, typer.Option("--bytes", min=-1, metavar="N")] = None,
    calls_per_s: Limit = None,
    watches: Limit = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Set quotas of a tenant's own; 0 is without limit, -1 what the settings say again.

    What is left out stays. Services know within five seconds.
    """
    from foldlog.core.validation import validate_tenant

    validate_tenant(tenant)
    given = dict(zip(LIMITS, (sessions, bytes_, calls_per_s, watches), strict=True))
    changed = {name: limit for name, limit in given.items() if limit is not None}
    if not changed:
        raise typer.BadParameter("name at least one quota", param_hint="--sessions, --bytes, ...")
    with database(database_url) as store:
        new = {name: None if limit == DEFAULT else limit for name, limit in changed.items()}
        quotas = replace(store.quotas.find(tenant), **new)
        in_audit_log(store, tenant, "SetQuotas", changed, lambda: store.quotas.set(tenant, quotas))


def recount(database_url: DatabaseUrl = None) -> None:
    """Count anew what each tenant has. The index, and with it listings, waits meanwhile."""
    with database(database_url) as store:
        store.quotas.recount()


COMMANDS: Mapping[str, Callable[..., None]] = {"show": show, "set": set_, "recount": recount}

quotas = typer.Typer(help="Quotas: how much tenants may use, on the database itself.")
for _name, _command in COMMANDS.items():
    quotas.command(_name)(_command)
