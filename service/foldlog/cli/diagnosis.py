"""`foldlog doctor`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from foldlog.cli.options import Address, AsJson, resolved
from foldlog.cli.outcome import Outcome
from foldlog.cli.serving import settings_from

if TYPE_CHECKING:
    from rich.table import Table

    from foldlog.cli.doctor import Finding

STYLES = {"ok": "green", "note": "blue", "warning": "yellow", "fault": "bold red"}
SIGNS = {"ok": "✓", "note": "·", "warning": "!", "fault": "✗"}
SUBJECT_WIDTH = 12


def doctor(
    database_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="The database. Unset: the configured one.", show_default=False
        ),
    ] = None,
    address: Address = "",
    as_json: AsJson = False,
) -> None:
    """Say what is wrong with this setup and how to mend it. Writes nothing."""
    from foldlog.cli.doctor import Severity, findings

    given = settings_from({"database_url": database_url})
    found = [*_told(findings(given, resolved(address)), as_json)]
    if as_json:
        from foldlog.cli.terminal import print_json

        print_json({"findings": [asdict(each) for each in found]})
    else:
        _sum_up(Counter(each.severity.value for each in found))
    if any(each.severity is Severity.FAULT for each in found):
        raise typer.Exit(Outcome.FINDING)


def _told(findings: Iterable[Finding], as_json: bool) -> Iterable[Finding]:
    """Yield the findings, each shown as soon as it is there unless JSON is wanted."""
    from foldlog.cli.terminal import put

    for finding in findings:
        if not as_json:
            put(_rows(finding))
        yield finding


def _rows(finding: Finding) -> Table:
    from rich.table import Table
    from rich.text import Text

    from foldlog.cli.terminal import printable

    style = STYLES[finding.severity]
    rows = Table.grid(padding=(0, 1))
    rows.add_column(width=1)
    rows.add_column(width=SUBJECT_WIDTH)
    rows.add_column()
    plain = finding.severity in {"ok", "note"}
    rows.add_row(
        Text(SIGNS[finding.severity], style),
        Text(finding.subject, "bold"),
        Text(printable(finding.what), "" if plain else style),
    )
    for mark, text in (("why", finding.why), ("do", finding.fix)):
        if text:
            rows.add_row("", Text(mark, "dim", justify="right"), printable(text))
    return rows


def _sum_up(counts: Counter[str]) -> None:
    from rich.text import Text

    from foldlog.cli.terminal import put

    said = Text()
    for severity, plural in (("fault", "faults"), ("warning", "warnings")):
        if count := counts[severity]:
            said.append(f"{count} {severity if count == 1 else plural}  ", STYLES[severity])
    put(said if said else Text("Nothing is wrong.", "green"))
