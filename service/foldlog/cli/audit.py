"""`foldlog verify`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foldlog.cli.connection import connected
from foldlog.cli.options import Address, AsJson
from foldlog.cli.outcome import Outcome

if TYPE_CHECKING:
    from foldlog.cli.anchors import AnchorFile
    from foldlog.client.client import Client
    from foldlog.client.requests import RequestVerification
    from foldlog.client.values import ChainFault, Verification

WHAT_TO_DO = {
    "log": "Restore a backup from before the damage.",
    "checkpoint": "Stop the service and empty foldlog_checkpoints: it is a cache.",
    "index": "The log is whole. Make the index anew: foldlog reindex",
    "attachments": "Collect none before it is mended; put again what is gone.",
    "unknown": "See what the release notes of the service say.",
}

WithRequests = Annotated[
    bool, typer.Option("--requests", help="Make every recorded request again too, and compare.")
]


@dataclass(frozen=True, slots=True)
class Audit:
    """What is known of one session now. `found` is None if it is not there."""

    session_id: str
    found: Verification | None
    departures: list[str]
    anchor_count: int
    made: RequestVerification | None

    @property
    def is_whole(self) -> bool:
        """Whether nothing was found."""
        is_made = self.made is None or self.made.ok
        return self.found is not None and self.found.intact and not self.departures and is_made


def verify(
    session: Annotated[
        str | None,
        typer.Argument(metavar="[SESSION]", help="Unset: with --all or --anchors, several."),
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Every session that the log, index or anchors have.")
    ] = False,
    anchors: Annotated[
        list[str] | None,
        typer.Option("--anchors", metavar="FILE", help="Signed heads that are to hold still."),
    ] = None,
    public_key: Annotated[
        list[str] | None,
        typer.Option(
            "--public-key",
            metavar="FILE",
            help="Who may have signed them; may be repeated. Unset: the service's key now.",
        ),
    ] = None,
    tenant: Annotated[str, typer.Option(metavar="NAME", help="Only anchors of this tenant.")] = "",
    requests: WithRequests = False,
    address: Address = "",
    as_json: AsJson = False,
) -> None:
    """Audit sessions, deleted or not, from their stored rows alone, and their ancestors.

    The chain of every row is recomputed, and what is derived from the rows is compared with them.
    """
    if session is None and not all_ and not anchors:
        raise typer.BadParameter("name a SESSION, or give --all or --anchors")
    with connected(address) as client:
        known = _known(client, anchors or [], public_key or [], tenant)
        chosen = [session] if session is not None else _sessions(client, known, all_)
        faults = [] if known is None else known.faults
        is_whole = _print_faults(faults, as_json)
        is_single = session is not None and not anchors
        for audit in (_audited(client, each, known, requests) for each in chosen):
            is_whole = _print(audit, as_json, is_single) and is_whole
    if not is_whole:
        raise typer.Exit(Outcome.FINDING)


def _known(
    client: Client, paths: list[str], public_keys: list[str], tenant: str
) -> AnchorFile | None:
    if not paths:
        return None
    from foldlog.cli.anchors import accepted_keys, read_anchors

    return read_anchors(paths, accepted_keys(public_keys, client), tenant)


def _sessions(client: Client, known: AnchorFile | None, all_: bool) -> Iterable[str]:
    """Return the sessions to audit, those that only the index lists among them."""
    found = dict.fromkeys(known.by_session if known else ())
    if all_:
        found |= dict.fromkeys(head.anchor.session_id for head in client.heads())
        found |= dict.fromkeys(info.session_id for info in client.list())
    return found


def _audited(client: Client, session_id: str, known: AnchorFile | None, requests: bool) -> Audit:
    from foldlog.cli.anchors import compared

    anchors = [] if known is None else known.by_session.get(session_id, [])
    found, departures = compared(client, session_id, anchors)
    made = None
    if requests and found is not None and not found.deleted:
        made = client.session(session_id).verify_requests()
    return Audit(session_id, found, departures, len(anchors), made)


def _print_faults(faults: list[str], as_json: bool) -> bool:
    """Print what is wrong with the anchors themselves; return whether nothing is."""
    from foldlog.cli.terminal import print_json, printable

    for each in faults:
        if as_json:
            print_json({"anchor_fault": each})
        else:
            typer.secho(printable(f"✗ {each}"), fg="red")
    return not faults


def _print(audit: Audit, as_json: bool, is_single: bool) -> bool:
    """Print what was found of one session; return whether it is nothing."""
    from foldlog.cli.terminal import print_json

    if as_json:
        print_json(_document(audit))
        return audit.is_whole
    for line, colour in _lines(audit, is_single):
        typer.secho(line, fg=colour)
    return audit.is_whole


def _document(audit: Audit) -> dict[str, Any]:
    document: dict[str, Any] = {"session_id": audit.session_id, "there": audit.found is not None}
    if audit.found is not None:
        document |= asdict(audit.found) | {"chain": audit.found.chain.hex()}
        del document["chains"]
    document["anchors"] = {"count": audit.anchor_count, "departures": audit.departures}
    if audit.made is not None:
        document["requests"] = {
            "verified_count": audit.made.verified_count,
            "skipped_count": audit.made.skipped_count,
            "mismatches": [
                {"seq": each.seq, "step_seq": each.step_seq, "reason": each.reason}
                for each in audit.made.mismatches
            ],
        }
    return document


def _lines(audit: Audit, is_single: bool) -> Iterator[tuple[str, str | None]]:
    from foldlog.cli.terminal import printable

    name = "" if is_single else printable(f"{audit.session_id}: ")
    found = audit.found
    if found is not None and found.intact:
        yield f"✓ {name}{found.row_count} rows, each as it was written", "green"
        if is_single:
            yield f"  chain {found.chain.hex()}", None
    elif found is not None:
        yield f"✗ {name}not as it was written ({found.row_count} rows looked at):", "red"
        for each in found.faults:
            yield printable(f"  {each.session_id}, {_place(each)}: {each.description}"), None
        for part in {each.part: None for each in found.faults}:
            yield f"  {WHAT_TO_DO[part]}", None
    for departure in audit.departures:
        yield f"✗ {name}{departure}", "red"
    if audit.anchor_count and audit.is_whole:
        counted = "its anchor" if audit.anchor_count == 1 else f"its {audit.anchor_count} anchors"
        yield f"✓ {name}it goes on from {counted}", "green"
    if audit.made is not None:
        yield from _made_lines(audit.made)


def _place(fault: ChainFault) -> str:
    if fault.part != "log":
        return f"the {fault.part}"
    return "the log" if fault.seq is None else f"event {fault.seq}"


def _made_lines(made: RequestVerification) -> Iterator[tuple[str, str | None]]:
    beside = f"; beside them, no steps: {made.skipped_count}" if made.skipped_count else ""
    if made.ok:
        comes = "request comes" if made.verified_count == 1 else "requests come"
        yield f"✓ {made.verified_count} {comes} out again{beside}", "green"
        return
    yield f"✗ of {made.verified_count} requests some do not come out again:", "red"
    for each in made.mismatches:
        yield f"  record {each.seq}: {each.reason or 'it comes out otherwise'}", None
