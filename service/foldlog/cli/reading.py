"""`foldlog show`, `tail` and `diff`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from foldlog.cli.connection import connected
from foldlog.cli.options import Address, AsJson, AtSeq, SessionId

if TYPE_CHECKING:
    from rich.console import RenderableType

    from foldlog.cli.transcript import Transcript
    from foldlog.client.client import Session
    from foldlog.client.stored import WatchItem
    from foldlog.client.values import Diff, FoldedMessage, SessionInfo

LAST_EVENTS = 10
Full = Annotated[bool, typer.Option("--full", help="Abbreviate nothing.", show_default=False)]


def show(
    session: SessionId,
    at: AtSeq = None,
    all_: Annotated[
        bool,
        typer.Option(
            "--all",
            help="The log instead of the fold: everything, in the order it was written.",
            show_default=False,
        ),
    ] = False,
    full: Full = False,
    address: Address = "",
    as_json: AsJson = False,
) -> None:
    """Print what the model sees, message by message, each with its seq.

    12@3 is event 12 standing at position 3, where it replaced others. With --all, what was shadowed
    or undone is there too, dimmed, with the reason.
    """
    with connected(address) as client:
        chosen = client.session(session)
        if as_json:
            _print_documents(chosen, at, all_)
            return
        from foldlog.cli.items import fold, log
        from foldlog.cli.terminal import put
        from foldlog.cli.transcript import Transcript

        put(_heading(chosen.info(), at))
        transcript = Transcript(is_full=full)
        for item in log(chosen.events(), at) if all_ else fold(chosen, at):
            put(transcript.rendered(item))


def _print_documents(chosen: Session, at: int | None, all_: bool) -> None:
    from foldlog.cli.documents import event_document, folded_document
    from foldlog.cli.items import until
    from foldlog.cli.terminal import print_json_lines

    if all_:
        print_json_lines(map(event_document, until(chosen.events(), at)))
    else:
        print_json_lines(map(folded_document, chosen.messages(at_seq=at)))


def _heading(info: SessionInfo, at: int | None) -> RenderableType:
    from rich.text import Text

    from foldlog.cli.terminal import printable

    facts = [f"next seq {info.next_seq}"]
    if info.parent:
        facts.append(f"fork of {printable(info.parent.session_id)} at {info.parent.at_seq}")
    if info.whole_from_seq:
        facts.append(f"history whole from {info.whole_from_seq}")
    if at is not None:
        facts.append(f"as it was after {at}")
    return Text.assemble((printable(info.session_id), "bold"), ("  " + ", ".join(facts), "dim"))


def tail(
    session: SessionId,
    from_seq: Annotated[
        int | None,
        typer.Option("--from", metavar="SEQ", help="Begin with this seq. Unset: the last ten."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Wait for what comes; end with Ctrl-C.")
    ] = True,
    full: Full = False,
    address: Address = "",
    as_json: AsJson = False,
) -> None:
    """Print events as they are written. Goes on after the service was restarted."""
    from foldlog.cli.transcript import Transcript

    with connected(address) as client:
        next_seq = client.session(session).info().next_seq
    first = max(0, next_seq - LAST_EVENTS) if from_seq is None else from_seq
    try:
        with connected(address, patient=follow) as client:
            watched = client.session(session)
            items = watched.watch(first) if follow else watched.events(first)
            _print_items(items, Transcript(is_full=full, knows_all=first == 0), as_json)
    except KeyboardInterrupt:
        raise typer.Exit from None


def _print_items(items: Iterable[WatchItem], transcript: Transcript, as_json: bool) -> None:
    if as_json:
        from foldlog.cli.documents import watch_document
        from foldlog.cli.terminal import print_json_lines

        print_json_lines(map(watch_document, items))
        return
    from foldlog.cli.items import watched
    from foldlog.cli.terminal import put

    for item in items:
        if (shown := watched(item)) is not None:
            put(transcript.rendered(shown))


def diff(
    left: Annotated[str, typer.Argument(metavar="LEFT", help="The first session's id.")],
    right: Annotated[str, typer.Argument(metavar="RIGHT", help="The second session's id.")],
    left_at: Annotated[
        int | None, typer.Option(metavar="SEQ", help="The first as it was after this seq.")
    ] = None,
    right_at: Annotated[
        int | None, typer.Option(metavar="SEQ", help="The second as it was after this seq.")
    ] = None,
    full: Full = False,
    address: Address = "",
    as_json: AsJson = False,
) -> None:
    """Compare what two sessions' models see: how much is common, then what each has alone."""
    with connected(address) as client:
        found = client.session(left).diff(right, at_seq=left_at, other_at_seq=right_at)
    if as_json:
        from foldlog.cli.documents import diff_document
        from foldlog.cli.terminal import print_json

        print_json(diff_document(found))
        return
    _print_tail(_common(found), (), full)
    _print_tail(f"only {left}", found.left, full)
    _print_tail(f"only {right}", found.right, full)


def _common(found: Diff) -> str:
    by_lineage = (
        "" if found.shared_seq is None else f"; their logs are one up to {found.shared_seq}"
    )
    return f"{_counted(found.common_count)} in common{by_lineage}"


def _counted(messages: int) -> str:
    return "1 message" if messages == 1 else f"{messages} messages"


def _print_tail(heading: str, messages: tuple[FoldedMessage, ...], full: bool) -> None:
    from rich.text import Text

    from foldlog.cli.items import folded
    from foldlog.cli.terminal import printable, put
    from foldlog.cli.transcript import Transcript

    put(Text(printable(heading), "bold"))
    transcript = Transcript(is_full=full, knows_all=False)
    for message in messages:
        put(transcript.rendered(folded(message)))
