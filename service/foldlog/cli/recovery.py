"""`foldlog recover` and `unresolved`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foldlog.cli.connection import connected
from foldlog.cli.options import Address, AsJson, RequestId, SessionId

if TYPE_CHECKING:
    from foldlog.client.recovery import Recovery, RecoveryPlan, UnresolvedCall
    from foldlog.core.recovery import OwedCall

RISKS = {
    1: "not started: it had no effect",
    2: "outcome unknown: it may have had its effect",
}


def recover(
    session: SessionId,
    plan: Annotated[
        bool,
        typer.Option("--plan", help="Only say what is open; change nothing.", show_default=False),
    ] = False,
    owner: Annotated[str, typer.Option(metavar="NAME", help="Who takes over, for people.")] = "",
    expected_epoch: Annotated[
        int | None,
        typer.Option(metavar="N", help="Refuse if another epoch is in force; 0: if any is."),
    ] = None,
    request_id: RequestId = None,
    address: Address = "",
    as_json: AsJson = False,
) -> None:
    """Take a session over after a crash: start a writer epoch and close what is open.

    Each call without a result gets one that is marked as synthetic; then the open step and the open
    turns end as interrupted. Writes need the new epoch from then on.
    """
    with connected(address) as client:
        chosen = client.session(session)
        if plan:
            _print_plan(chosen.plan_recovery(), as_json)
            return
        found = chosen.recover(owner, expected_epoch, request_id=request_id)
    _print_recovery(found, as_json)


def _print_plan(plan: RecoveryPlan, as_json: bool) -> None:
    if as_json:
        from foldlog.cli.terminal import print_json

        print_json(plan_document(plan))
        return
    if not plan.interrupted:
        typer.echo("nothing is open")
    for line in _told(plan):
        typer.echo(line)


def plan_document(plan: RecoveryPlan) -> dict[str, Any]:
    """Return a plan with its risks by name."""
    owed = [asdict(call) | {"risk": call.risk.name.lower()} for call in plan.owed_calls]
    return asdict(plan) | {"owed_calls": owed}


def _told(plan: RecoveryPlan) -> Iterator[str]:
    for seq in plan.open_turn_seqs:
        yield f"a turn is open since {seq}"
    if plan.open_step_seq is not None:
        yield f"a step is open since {plan.open_step_seq}"
    yield from map(_told_of_call, plan.owed_calls)


def _told_of_call(call: OwedCall) -> str:
    from foldlog.cli.terminal import printable

    name = f" of {call.name}" if call.name else ""
    key = f" (idempotency key {call.idempotency_key})" if call.idempotency_key else ""
    return printable(f"call {call.call_id}{name} at {call.seq} is {RISKS[call.risk]}{key}")


def _print_recovery(found: Recovery, as_json: bool) -> None:
    if as_json:
        from foldlog.cli.terminal import print_json

        about = {
            "writer_epoch": found.writer_epoch,
            "next_seq": found.next_seq,
            "closing_seqs": found.closing_seqs,
        }
        print_json(about | {"plan": plan_document(found.plan)})
        return
    for line in _told(found.plan):
        typer.echo(line)
    closed = f"closed it with {len(found.closing_seqs)} events" if found.closing_seqs else ""
    typer.echo(closed or "nothing was open")
    typer.echo(f"writer epoch {found.writer_epoch}, next seq {found.next_seq}")


def unresolved(
    session: Annotated[
        str | None, typer.Argument(metavar="[SESSION]", help="Only calls of this session.")
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="At most so many; 0: all.")] = 50,
    address: Address = "",
    as_json: AsJson = False,
) -> None:
    """List tool calls that were dispatched and of which nothing more is known, the oldest first."""
    with connected(address) as client:
        _print_calls(islice(client.unresolved_calls(session), limit or None), as_json)


def _print_calls(calls: Iterable[UnresolvedCall], as_json: bool) -> None:
    from foldlog.cli.terminal import print_json_lines, printable, put

    if as_json:
        print_json_lines(asdict(call) for call in calls)
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("DISPATCHED", "SESSION", "SEQ", "CALL", "TOOL", "IDEMPOTENCY KEY"):
        table.add_column(name, justify="right" if name == "SEQ" else "left", overflow="fold")
    for call in calls:
        about = (call.session_id, str(call.seq), call.call_id, call.name, call.idempotency_key)
        table.add_row(f"{call.time:%Y-%m-%d %H:%M:%S}", *map(printable, about))
    if table.row_count:
        put(table)
    else:
        typer.echo("no unresolved calls", err=True)
