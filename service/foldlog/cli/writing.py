"""`foldlog append`, `replace`, `rewind`, `fork` and `snapshot`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foldlog.cli.connection import connected
from foldlog.cli.options import (
    Address,
    AsJson,
    ExpectedNextSeq,
    Labels,
    RequestId,
    SessionId,
    WriterEpoch,
    parsed_labels,
)

if TYPE_CHECKING:
    from foldlog.client.client import Session
    from foldlog.client.new_events import NewEvent
    from foldlog.client.values import Appended, CutState
    from foldlog.core.message import Message


class RoleName(StrEnum):
    """Who speaks."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


Words = Annotated[
    str | None, typer.Argument(metavar="[TEXT]", help="What is said. Unset or -: from stdin.")
]
ToolCallId = Annotated[
    str | None, typer.Option(metavar="ID", help="The call this answers; needed for role tool.")
]
Name = Annotated[
    str | None, typer.Option("--name", metavar="NAME", help="The speaker's or the tool's name.")
]
ValidateOnly = Annotated[
    bool, typer.Option("--validate-only", help="Say what would happen; write nothing.")
]
RequireClosedTurn = Annotated[
    bool, typer.Option("--require-closed-turn", help="Refuse if a turn is open there.")
]


def append(
    session: SessionId,
    text: Words = None,
    role: Annotated[RoleName, typer.Option(help="Who speaks.")] = RoleName.USER,
    tool_call_id: ToolCallId = None,
    name: Name = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Append the messages of a file instead: what `show --json` prints, a list of"
            " OpenAI messages, or a provider's request; -: from stdin.",
        ),
    ] = None,
    expected_next_seq: ExpectedNextSeq = None,
    writer_epoch: WriterEpoch = None,
    validate_only: ValidateOnly = False,
    request_id: RequestId = None,
    address: Address = "",
    as_json: AsJson = False,
) -> None:
    """Append a message, or the messages of a file."""
    events = _from_file(source) if source else [_message(role, text, tool_call_id, name)]
    with connected(address) as client:
        done = _write(
            _as_writer(client.session(session), writer_epoch),
            events,
            expected_next_seq=expected_next_seq,
            validate_only=validate_only,
            request_id=request_id,
        )
    _print_appended(done, validate_only, as_json)


def _from_file(source: str) -> list[Any]:
    from foldlog.cli.requests import read_messages
    from foldlog.client.new_events import NewEvent

    given = read_messages(source)
    return [NewEvent(m, group=g) for m, g in zip(given.messages, given.groups, strict=True)]


def _message(
    role: RoleName, text: str | None, tool_call_id: str | None, name: str | None
) -> Message:
    from foldlog.core.message import Message, Role

    said = sys.stdin.read() if text in (None, "-") else text
    return Message(Role[role.name], said, tool_call_id=tool_call_id, name=name)


def _as_writer(session: Session, epoch: int | None) -> Session:
    session.writer_epoch = epoch
    return session


def _write(session: Session, events: Sequence[Message | NewEvent], **options: Any) -> Appended:
    if not events:
        raise typer.BadParameter("there is no message to append")
    return session.append(*events, **options)


def _print_appended(done: Appended, validate_only: bool, as_json: bool) -> None:
    from foldlog.cli.terminal import print_json, printable

    if as_json:
        print_json(asdict(done) | {"validate_only": validate_only})
        return
    last = done.next_seq - 1
    seqs = f"{done.first_seq}" if last == done.first_seq else f"{done.first_seq} to {last}"
    typer.echo(f"{'would append' if validate_only else 'appended'} {seqs}")
    for each in done.replaces:
        shadowed = ", ".join(map(str, each.shadowed_seqs)) or "nothing"
        typer.echo(f"  {each.seq} stands at {each.position} and shadows {shadowed}")
        for what, ids in (
            ("results without a call", each.orphaned_result_ids),
            ("calls without a result", each.unanswered_call_ids),
        ):
            if ids:
                typer.secho(f"  leaves {what}: {printable(', '.join(ids))}", fg="yellow", err=True)


def replace(
    session: SessionId,
    first: Annotated[int, typer.Argument(metavar="FIRST", help="The first event to shadow.")],
    last: Annotated[int, typer.Argument(metavar="LAST", help="The last one, in surface order.")],
    text: Words = None,
    role: Annotated[RoleName, typer.Option(help="Who speaks.")] = RoleName.SYSTEM,
    tool_call_id: ToolCallId = None,
    name: Name = None,
    positions: Annotated[
        bool, typer.Option("--positions", help="FIRST and LAST are positions, not seqs.")
    ] = False,
    require_balanced: Annotated[
        bool, typer.Option("--require-balanced", help="Refuse to part a call from its result.")
    ] = False,
    expected_next_seq: ExpectedNextSeq = None,
    writer_epoch: WriterEpoch = None,
    validate_only: ValidateOnly = False,
    request_id: RequestId = None,
    address: Address = "",
    as_json: AsJson = False,
) -> None:
    """Append a message in place of live ones. What it shadows stays in the log."""
    from foldlog.client.new_events import replacing

    message = _message(role, text, tool_call_id, name)
    if positions:
        event = replacing(message, start=first, stop=last)
    else:
        event = replacing(message, first_seq=first, last_seq=last)
    with connected(address) as client:
        done = _write(
            _as_writer(client.session(session), writer_epoch),
            [event],
            require_balanced=require_balanced,
            expected_next_seq=expected_next_seq,
            validate_only=validate_only,
            request_id=request_id,
        )
    _print_appended(done, validate_only, as_json)


def rewind(
    session: SessionId,
    to_seq: Annotated[
        int, typer.Argument(metavar="SEQ", help="The last seq that shall count; -1: none.")
    ],
    require_closed_turn: RequireClosedTurn = False,
    expected_next_seq: ExpectedNextSeq = None,
    writer_epoch: WriterEpoch = None,
    request_id: RequestId = None,
    address: Address = "",
    as_json: AsJson = False,
) -> None:
    """Take the session back to what it was right after SEQ. What is undone stays in the log."""
    with connected(address) as client:
        done = _as_writer(client.session(session), writer_epoch).rewind(
            to_seq,
            require_closed_turn=require_closed_turn,
            expected_next_seq=expected_next_seq,
            request_id=request_id,
        )
    _print_cut(asdict(done), f"rewound to {to_seq} by event {done.seq}", done.cut, as_json)


def fork(
    session: SessionId,
    child: Annotated[
        str | None, typer.Argument(metavar="[CHILD]", help="The fork's id. Unset: one is made.")
    ] = None,
    at_seq: Annotated[
        int | None,
        typer.Option("--at", metavar="SEQ", help="The last seq shared; -1: none. Unset: all."),
    ] = None,
    label: Labels = None,
    require_closed_turn: RequireClosedTurn = False,
    request_id: RequestId = None,
    address: Address = "",
    as_json: AsJson = False,
) -> None:
    """Make a session that shares this one's log up to a seq. Costs one row, whatever the length."""
    with connected(address) as client:
        made = client.session(session).fork(
            at_seq=at_seq,
            session_id=child,
            labels=parsed_labels(label),
            require_closed_turn=require_closed_turn,
            request_id=request_id,
        )
    document: dict[str, Any] = {"session_id": made.session_id, "next_seq": made.next_seq}
    if made.cut:
        document["cut"] = asdict(made.cut)
    _print_cut(document, made.session_id, made.cut, as_json)


def _print_cut(document: dict[str, Any], said: str, cut: CutState | None, as_json: bool) -> None:
    from foldlog.cli.terminal import print_json, printable

    if as_json:
        print_json(document)
        return
    typer.echo(printable(said))
    if cut and cut.open_turn_seq is not None:
        typer.secho(f"  the turn begun at {cut.open_turn_seq} is open there", fg="yellow", err=True)
    if cut and cut.unanswered_call_ids:
        ids = printable(", ".join(cut.unanswered_call_ids))
        typer.secho(f"  calls without a result there: {ids}", fg="yellow", err=True)


def snapshot(
    session: SessionId,
    request_id: RequestId = None,
    address: Address = "",
    as_json: AsJson = False,
) -> None:
    """Drop for good the bodies of events that are shadowed or undone. Forks keep what they read."""
    from foldlog.cli.terminal import print_json

    with connected(address) as client:
        done = client.session(session).snapshot(request_id=request_id)
    if as_json:
        print_json(asdict(done))
        return
    whole = f"; history is whole from {done.whole_from_seq}" if done.whole_from_seq else ""
    typer.echo(f"dropped {done.dropped_count} events{whole}")
