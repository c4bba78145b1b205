"""`foldlog audit`: who did what to a tenant's sessions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foldlog.cli.connection import connected
from foldlog.cli.options import Address, AsJson
from foldlog.cli.sessions import Time, with_zone

if TYPE_CHECKING:
    from foldlog.client.stored import Event

AUDIT_SESSION = "foldlog:audit"
KIND = "foldlog.audit"
UNKNOWN = "not known"
NONE = "no acts that this key may see: it takes the key of an admin, without labels"


def audit(
    since: Time = None,
    limit: Annotated[int, typer.Option(min=0, help="The newest so many; 0: all.")] = 50,
    address: Address = "",
    as_json: AsJson = False,
) -> None:
    """Show who did what, the oldest first, from the audit log of the key's tenant.

    An act whose outcome is not known was cut off, or is still under way.
    """
    from foldlog.cli.terminal import print_json_lines
    from foldlog.client.errors import SessionNotFoundError

    after = with_zone(since)
    with connected(address) as client:
        try:
            found = list(_acts(client.session(AUDIT_SESSION).events()))
        except SessionNotFoundError:
            found = []
    since_ns = int(after.timestamp() * 1e9) if after else 0
    acts = [act for act in found if act["time_ns"] >= since_ns][-limit:]
    if as_json:
        print_json_lines(acts)
    else:
        _print_table(acts)


def _acts(events: Iterable[Event]) -> Iterable[dict[str, Any]]:
    """Return each act with its outcome, in the order in which they began."""
    from foldlog.client.bodies import Custom

    acts: dict[str, dict[str, Any]] = {}
    for event in events:
        body = event.body
        if not isinstance(body, Custom) or body.kind != KIND:
            continue
        said = json.loads(body.payload)
        call = said["call"]
        if call in acts:
            acts[call]["outcome"] = said.get("outcome", UNKNOWN)
            continue
        acts[call] = {
            "seq": event.seq,
            "time_ns": event.time_ns,
            "by": said["by"],
            "act": said["act"],
            "on": said.get("on", {}),
            "outcome": said.get("outcome", UNKNOWN),
        }
    return acts.values()


def _print_table(acts: Iterable[dict[str, Any]]) -> None:
    from rich.table import Table

    from foldlog.cli.terminal import printable, put

    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("TIME", "WHO", "ACT", "OUTCOME", "ON"):
        table.add_column(name, overflow="fold")
    for act in acts:
        time = datetime.fromtimestamp(act["time_ns"] // 1_000_000_000, UTC)
        on = " ".join(
            f"{name}={_shown(value)}" for name, value in act["on"].items() if value not in ("", {})
        )
        began = f"{time:%Y-%m-%d %H:%M:%S}"
        table.add_row(*map(printable, (began, act["by"], act["act"], act["outcome"], on)))
    if table.row_count:
        put(table)
    else:
        typer.echo(NONE, err=True)


def _shown(value: object) -> object:
    """Return labels as people give them, and all else as it is."""
    if not isinstance(value, dict):
        return value
    return ",".join(f"{key}={each}" for key, each in sorted(value.items()))
