"""`foldlog sessions`, `create`, `info`, `label` and `delete`."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from foldlog.cli.connection import connected
from foldlog.cli.options import Address, AsJson, Labels, RequestId, SessionId, parsed_labels

if TYPE_CHECKING:
    from foldlog.client.values import SessionInfo

TIMES = ("%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z")


def parsed_time(text: str) -> datetime:
    """Return the time that somebody wrote. Raises BadParameter, which says how one is written."""
    for form in TIMES:
        with suppress(ValueError):
            return datetime.strptime(text, form)
    wrong = f"{text!r} is no time such as 2026-12-31, 2026-12-31T08:00:00 or 2026-12-31T08:00:00Z"
    raise typer.BadParameter(wrong)


Time = Annotated[datetime | None, typer.Option(metavar="TIME", parser=parsed_time)]
Metadata = Annotated[
    str | None, typer.Option("--metadata", metavar="JSON", help="Free JSON, kept as it is.")
]


def sessions(
    label: Labels = None,
    parent: Annotated[str, typer.Option(metavar="SESSION", help="Only forks of this one.")] = "",
    custom_key: Annotated[
        str, typer.Option(metavar="KEY", help="Only those with a custom event of this key.")
    ] = "",
    custom_kind: Annotated[
        str, typer.Option(metavar="KIND", help="Only those with a custom event of this kind.")
    ] = "",
    created_from: Time = None,
    created_before: Time = None,
    updated_from: Time = None,
    limit: Annotated[int, typer.Option(min=0, help="At most so many; 0: all.")] = 50,
    address: Address = "",
    as_json: AsJson = False,
) -> None:
    """List sessions, the newest first. Times are UTC unless they say otherwise."""
    with connected(address) as client:
        found = client.list(
            labels=parsed_labels(label),
            parent=parent,
            custom_key=custom_key,
            custom_kind=custom_kind,
            created_from=with_zone(created_from),
            created_before=with_zone(created_before),
            updated_from=with_zone(updated_from),
        )
        _print_list(islice(found, limit or None), as_json)


def with_zone(time: datetime | None) -> datetime | None:
    """Return a time whose zone, where it has none, is UTC."""
    return time.replace(tzinfo=UTC) if time and time.tzinfo is None else time


def _print_list(found: Iterable[SessionInfo], as_json: bool) -> None:
    from foldlog.cli.terminal import print_json_lines, printable, put

    if as_json:
        from foldlog.cli.documents import session_document

        print_json_lines(map(session_document, found))
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("SESSION", "EVENTS", "CREATED", "CHANGED", "FORK OF", "LABELS"):
        table.add_column(name, justify="right" if name == "EVENTS" else "left", overflow="fold")
    for info in found:
        table.add_row(*map(printable, _cells(info)))
    if table.row_count:
        put(table)
    else:
        typer.echo("no sessions", err=True)


def _cells(info: SessionInfo) -> tuple[str, ...]:
    parent = info.parent
    return (
        info.session_id,
        str(info.next_seq),
        f"{info.create_time:%Y-%m-%d %H:%M:%S}",
        f"{info.update_time:%Y-%m-%d %H:%M:%S}",
        f"{parent.session_id} at {parent.at_seq}" if parent else "",
        " ".join(f"{key}={value}" for key, value in sorted(info.labels.items())),
    )


def create(
    session: Annotated[
        str | None, typer.Argument(metavar="[SESSION]", help="The id. Unset: one is made.")
    ] = None,
    label: Labels = None,
    metadata: Metadata = None,
    request_id: RequestId = None,
    address: Address = "",
    as_json: AsJson = False,
) -> None:
    """Create a session and print its id."""
    with connected(address) as client:
        made = client.create(
            session,
            labels=parsed_labels(label),
            metadata_json=metadata or "",
            request_id=request_id,
        )
        _print_session(made.info(), as_json)


def info(session: SessionId, address: Address = "", as_json: AsJson = False) -> None:
    """Print a session's state and where it was forked from."""
    from foldlog.cli.documents import session_document
    from foldlog.cli.terminal import print_json

    with connected(address) as client:
        found = client.session(session)
        state, ancestors = found.info(), found.lineage()
    if as_json:
        points = [{"session_id": a.session_id, "at_seq": a.at_seq} for a in ancestors]
        print_json(session_document(state) | {"ancestors": points})
        return
    _print_facts(state, [f"{a.session_id} at {a.at_seq}" for a in ancestors])


def _print_facts(state: SessionInfo, ancestors: list[str]) -> None:
    from rich.table import Table
    from rich.text import Text

    from foldlog.cli.terminal import printable, put

    open_turn = "none" if state.open_turn_seq is None else f"begun at {state.open_turn_seq}"
    facts = {
        "session": state.session_id,
        "next seq": str(state.next_seq),
        "created": f"{state.create_time:%Y-%m-%d %H:%M:%S} UTC",
        "changed": f"{state.update_time:%Y-%m-%d %H:%M:%S} UTC",
        "labels": " ".join(f"{k}={v}" for k, v in sorted(state.labels.items())),
        "metadata": state.metadata_json,
        "fork of": ", a fork of ".join(ancestors),
        "open turn": open_turn,
        "writer epoch": str(state.writer_epoch or "none"),
        "history": f"whole from {state.whole_from_seq}" if state.whole_from_seq else "whole",
    }
    table = Table.grid(padding=(0, 2))
    for name, value in facts.items():
        if value:
            table.add_row(Text(name, "dim"), printable(value))
    put(table)


def label(
    session: SessionId,
    changes: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE|KEY-", help="Set a label, or remove one with KEY-."),
    ] = None,
    metadata: Metadata = None,
    request_id: RequestId = None,
    address: Address = "",
    as_json: AsJson = False,
) -> None:
    """Set and remove labels; replace metadata (an empty text removes it)."""
    given = changes or []
    removed = [each[:-1] for each in given if each.endswith("-") and "=" not in each]
    added = [each for each in given if "=" in each or not each.endswith("-")]
    if not given and metadata is None:
        raise typer.BadParameter("name a label to set or to remove, or give --metadata")
    with connected(address) as client:
        changed = client.session(session).update(
            set_labels=parsed_labels(added),
            remove_labels=removed,
            metadata_json=metadata,
            request_id=request_id,
        )
        _print_session(changed, as_json)


def delete(
    session: SessionId,
    request_id: RequestId = None,
    address: Address = "",
    as_json: AsJson = False,
) -> None:
    """Hide a session for ever. Forks keep what they read; its id is never used again."""
    from foldlog.cli.terminal import print_json, printable

    with connected(address) as client:
        client.session(session).delete(request_id=request_id)
    if as_json:
        print_json({"session_id": session, "deleted": True})
    else:
        typer.echo(f"deleted {printable(session)}")


def erase(
    session: SessionId,
    include_forks: Annotated[
        bool, typer.Option("--include-forks", help="Erase the forks that read it, too.")
    ] = False,
    reason: Annotated[
        str, typer.Option("--reason", help="Why; kept for good and in clear.", show_default=False)
    ] = "",
    request_id: RequestId = None,
    address: Address = "",
    as_json: AsJson = False,
) -> None:
    """Destroy what was said in a session, for good. Its chain can still be verified."""
    from foldlog.cli.terminal import print_json, printable

    with connected(address) as client:
        erased = client.session(session).erase(
            include_forks=include_forks, reason=reason, request_id=request_id
        )
    if as_json:
        counts = {
            "attachment_count": erased.attachment_count,
            "pending_attachment_count": erased.pending_attachment_count,
        }
        print_json({"erased_session_ids": erased.session_ids, **counts})
        return
    for each in erased.session_ids:
        typer.echo(f"erased {printable(each)}")
    if erased.attachment_count or erased.pending_attachment_count:
        typer.echo(
            f"{erased.attachment_count:,} attachments are gone, and"
            f" {erased.pending_attachment_count:,} go within minutes"
        )


def _print_session(state: SessionInfo, as_json: bool) -> None:
    from foldlog.cli.documents import session_document
    from foldlog.cli.terminal import print_json, printable

    if as_json:
        print_json(session_document(state))
    else:
        typer.echo(printable(state.session_id))
