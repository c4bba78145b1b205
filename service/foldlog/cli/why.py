"""`foldlog why` and `request`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foldlog.cli.connection import connected
from foldlog.cli.options import Address, AsJson, AtSeq, SessionId

if TYPE_CHECKING:
    from foldlog.client.client import Session
    from foldlog.client.requests import BuiltRequest, RequestChange


StepSeq = Annotated[
    int | None,
    typer.Argument(
        metavar="[STEP]", help="The seq at which a step began. Unset: every step that broke it."
    ),
]
OfStep = Annotated[
    int | None,
    typer.Option("--step", metavar="SEQ", help="As it was for the step that began at this seq."),
]
FIELD_NAMES = {
    "provider": "the provider",
    "model": "the model",
    "parameters_json": "the parameters",
    "system_prompt": "the system prompt",
    "tools_json": "the tools",
    "reasoning_effort": "the reasoning effort",
}


def why(
    session: SessionId, step: StepSeq = None, address: Address = "", as_json: AsJson = False
) -> None:
    """Say why a provider's prefix cache did not serve: which change broke it, and what that cost.

    A request that only adds messages to the one before is served from the provider's cache as far
    as that went. Where one does not, this says from where on, and which event was the cause.
    """
    with connected(address) as client:
        chosen = client.session(session)
        changes = list(chosen.cache_breaks()) if step is None else [chosen.explain(step)]
        if as_json:
            from foldlog.cli.terminal import print_json_lines

            print_json_lines(map(change_document, changes))
            return
        for change in changes:
            _print_change(chosen, change)
    if not changes:
        typer.secho("✓ Each request only added to the one before: nothing was lost.", fg="green")


def change_document(change: RequestChange) -> dict[str, Any]:
    """Return a change for JSON, with the names of the wire."""
    found = asdict(change) | {"kind": change.kind.name, "header_fields": list(change.header_fields)}
    return {name: value for name, value in found.items() if value is not None}


def _print_change(session: Session, change: RequestChange) -> None:
    from foldlog.cli.terminal import printable

    step = f"step {change.step_seq}"
    if change.previous_step_seq is None:
        typer.echo(f"{step.capitalize()} is the first: there is no request before it.")
        return
    if change.is_extension:
        before = f"the request of step {change.previous_step_seq}"
        typer.secho(f"✓ {step.capitalize()} only adds to {before}: its cache serves.", fg="green")
        return
    typer.secho(f"✗ {step.capitalize()}: {_what(change)}", fg="red")
    typer.echo(f"  {_kept(change)}")
    typer.echo(f"  Lost: {_lost(change)}.")
    if change.cause_seq is not None:
        typer.echo(printable(f"  Cause: event {change.cause_seq}, {_cause(session, change)}"))


def _what(change: RequestChange) -> str:
    from foldlog.core.change import ChangeKind

    fields = " and ".join(FIELD_NAMES.get(name, name) for name in change.header_fields)
    match change.kind:
        case ChangeKind.REPLACE:
            return "a replace took messages away that the provider had cached"
        case ChangeKind.REWIND:
            return f"a rewind went back behind what was sent{f': {fields}' if fields else ''}"
        case ChangeKind.HEADER:
            return f"{fields} changed"
        case ChangeKind.TOOLS_REORDERED:
            return "the same tools stand in another order"
        case ChangeKind.BYTES:
            return f"the same JSON in other bytes{f': {fields}' if fields else ''}"
    return "a change this release does not know"


def _kept(change: RequestChange) -> str:
    if change.header_fields:
        return "The header stands before all messages: nothing of the request before serves."
    kept, sent = change.message_index or 0, change.previous_messages
    before = change.previous_step_seq
    if not kept:
        return f"None of the {sent} messages of step {before} still serves."
    first = "the first still serves" if kept == 1 else f"the first {kept} still serve"
    return f"Of the {sent} messages of step {before} {first}."


def _lost(change: RequestChange) -> str:
    messages = "1 message" if change.lost_messages == 1 else f"{change.lost_messages} messages"
    return f"{messages}, {change.lost_bytes:,} bytes, about {change.lost_tokens:,} tokens"


def _cause(session: Session, change: RequestChange) -> str:
    """Return what the event that caused a change is, in words."""
    from foldlog.cli.items import Entry, log

    assert change.cause_seq is not None
    with session.events(change.cause_seq, page_size=1) as events:
        item = next(log(events, change.cause_seq))
    if isinstance(item, Entry):
        from foldlog.cli.documents import role_name

        return f"a {role_name(item.message.role)} message {item.shadows}".rstrip()
    return item.text


def request(
    session: SessionId,
    step: OfStep = None,
    at: AtSeq = None,
    independent: Annotated[
        bool,
        typer.Option("--independent", help="Make it from the stored rows, past every cache."),
    ] = False,
    address: Address = "",
    as_json: AsJson = False,
) -> None:
    """Print a request again: its header and its messages, now, at a seq or of a step."""
    if step is not None and at is not None:
        raise typer.BadParameter("it excludes --step", param_hint="--at")
    with connected(address) as client:
        built = client.session(session).build_request(at, step_seq=step, independent=independent)
    if as_json:
        from foldlog.cli.terminal import print_json

        print_json(request_document(built))
    else:
        _print_request(built)


def request_document(built: BuiltRequest) -> dict[str, Any]:
    """Return a request for JSON."""
    from foldlog.cli.documents import folded_document

    return {
        "header": asdict(built.header),
        "messages": [folded_document(each) for each in built.messages],
        "encoding_sha256": built.encoding_sha256.hex(),
        "built_at_next_seq": built.next_seq,
    }


def _print_request(built: BuiltRequest) -> None:
    from foldlog.cli.items import folded
    from foldlog.cli.terminal import printable, put
    from foldlog.cli.transcript import Transcript

    header = built.header
    for name in ("provider", "model", "reasoning_effort", "parameters_json", "system_prompt"):
        if value := getattr(header, name):
            typer.echo(printable(f"{name}: {value}"))
    for tool in header.tools_json:
        typer.echo(printable(f"tool: {tool}"))
    transcript = Transcript(is_full=True)
    for message in built.messages:
        put(transcript.rendered(folded(message)))
    typer.echo(f"sha256 {built.encoding_sha256.hex()}, built at {built.next_seq}")
