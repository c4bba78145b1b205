"""`foldlog check`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from foldlog.cli.connection import connected
from foldlog.cli.options import Address, AsJson, AtSeq, SessionId
from foldlog.cli.outcome import Outcome
from foldlog.cli.requests import Format

if TYPE_CHECKING:
    from foldlog.cli.requests import Given
    from foldlog.client.client import Session
    from foldlog.client.values import CheckResult
    from foldlog.core.header import Header


File = Annotated[
    str,
    typer.Argument(
        metavar="FILE", help="A provider's request, or a list of its messages, as JSON; -: stdin."
    ),
]
FormatName = Annotated[
    Format,
    typer.Option("--format", metavar="FORMAT", help=f"What FILE holds: {', '.join(Format)}."),
]
CompareHeader = Annotated[
    bool,
    typer.Option("--header/--no-header", help="Compare all else too, if the log has a header."),
]
StrictSystem = Annotated[
    bool, typer.Option("--strict-system", help="Compare the content of system messages.")
]
CompareReasoning = Annotated[bool, typer.Option("--compare-reasoning", help="Compare reasoning.")]
ReportUnanswered = Annotated[
    bool, typer.Option("--report-unanswered-calls", help="Report a call without a result.")
]
ByteExact = Annotated[bool, typer.Option("--byte-exact", help="Report equal JSON in other bytes.")]
Independent = Annotated[
    bool, typer.Option("--independent", help="Read the stored rows again, past every cache.")
]


def check(
    session: SessionId,
    file: File,
    format_: FormatName = Format.AUTO,
    at: AtSeq = None,
    header: CompareHeader = True,
    strict_system: StrictSystem = False,
    compare_reasoning: CompareReasoning = False,
    report_unanswered_calls: ReportUnanswered = False,
    byte_exact: ByteExact = False,
    independent: Independent = False,
    address: Address = "",
    as_json: AsJson = False,
) -> None:
    """Say whether a request can be derived from the log, and if not, what is wrong with it."""
    from foldlog.cli.requests import read_messages

    given = read_messages(file, format_)
    with connected(address) as client:
        chosen = client.session(session)
        compared = _comparable_header(chosen, given, at) if header else None
        found = chosen.check(
            given.messages,
            header=compared,
            mode="warn",
            at_seq=at,
            strict_system=strict_system,
            compare_reasoning=compare_reasoning,
            report_unanswered_calls=report_unanswered_calls,
            byte_exact=byte_exact,
            independent=independent,
        )
    _print_found(found, given if header else replace(given, header=None), compared, as_json)
    if not found.ok:
        raise typer.Exit(Outcome.FINDING)


def _comparable_header(session: Session, given: Given, at: int | None) -> Header | None:
    """Return the request's header if the log has one to compare it with."""
    from foldlog.core.errors import HeaderMissingError

    if given.header is None:
        return None
    try:
        session.header(at_seq=at)
    except HeaderMissingError:
        return None
    return given.header


def _print_found(found: CheckResult, given: Given, compared: Header | None, as_json: bool) -> None:
    from foldlog.cli.documents import violation_document
    from foldlog.cli.terminal import print_json, put

    with_header = compared is not None
    if as_json:
        violation = violation_document(found.violation) if found.violation else None
        print_json(
            {
                "checked": found.checked,
                "ok": found.ok,
                "violation": violation,
                "next_seq": found.next_seq,
                "format": given.format,
                "header_compared": with_header,
            }
        )
    elif found.violation:
        from foldlog.cli.violation import explained

        put(explained(found.violation))
    else:
        what = f"{len(given.messages)} messages{' and the header' if with_header else ''}"
        typer.secho(f"✓ The request can be derived from the log: {what}.", fg="green")
        if given.header is not None and not with_header:
            typer.echo("  Its header was not compared: the log has none.", err=True)
