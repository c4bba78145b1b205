"""`foldlog retain`: applies retention rules, as a job that may be broken off and run again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foldlog.cli.connection import connected
from foldlog.cli.options import Address, AsJson
from foldlog.cli.outcome import CommandError, Outcome
from foldlog.cli.retention_rules import Action, Rule, parse, rule_of
from foldlog.core.errors import (
    HasForksError,
    SessionDeletedError,
    SessionNotFoundError,
)

if TYPE_CHECKING:
    from foldlog import Client

# What is refused for a session's own reasons is told at the end; anything else ends the job.
OF_ONE_SESSION = (HasForksError,)


@dataclass(slots=True)
class Report:
    """What came of each rule."""

    matched: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    refused: list[tuple[str, str, str]] = field(default_factory=list)  # rule, session, why


def retain(
    rules: Annotated[Path, typer.Option("--rules", metavar="FILE", help="The rules, as TOML.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
    address: Address = "",
    as_json: AsJson = False,
) -> None:
    """Delete, snapshot or erase sessions by label and age.

    The first rule that a session falls under is applied to it. Run it again after a crash: what is
    done is not listed any more.
    """
    from foldlog.cli.progress import progress
    from foldlog.cli.terminal import print_json

    known, now, report = _read(rules), datetime.now(UTC), Report()
    with connected(address) as client:
        found = list(_matching(client, known, now))
        with progress("applying rules", len(found), quiet) as advance:
            for session_id, rule in found:
                report.matched[rule.name] += 1
                line = _applied(client, session_id, rule, known, now, dry_run, report)
                if as_json:
                    print_json(line)
                advance(1)
    if not as_json:
        _print(report, known, dry_run)
    if report.refused:
        raise typer.Exit(Outcome.FINDING)


def _read(path: Path) -> list[Rule]:
    try:
        return parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise CommandError(f"{path}: {error}") from None


def _matching(client: Client, rules: Sequence[Rule], now: datetime) -> Iterator[tuple[str, Rule]]:
    """Yield the sessions that fall under a rule, each once: forks before what they come from.

    Listings have the newest session first, and a fork is newer than its parent.
    """
    for info in client.list():
        rule = rule_of(rules, info, now)
        if rule is not None:
            yield info.session_id, rule


def _applied(
    client: Client,
    session_id: str,
    rule: Rule,
    rules: Sequence[Rule],
    now: datetime,
    dry_run: bool,
    report: Report,
) -> dict[str, Any]:
    """Apply a rule to a session, unless it was written to, or went, since it was listed."""
    line = {"session_id": session_id, "rule": rule.name, "action": str(rule.action)}
    session = client.session(session_id)
    try:
        if not dry_run and rule_of(rules, session.info(), now) == rule:
            _apply(session, rule)
    except (SessionDeletedError, SessionNotFoundError):
        pass  # somebody else was faster
    except OF_ONE_SESSION as error:
        report.refused.append((rule.name, session_id, str(error)))
        return line | {"refused": error.reason}
    report.done[rule.name] += 1
    return line | {"dry_run": dry_run}


def _apply(session: Any, rule: Rule) -> None:
    match rule.action:
        case Action.DELETE:
            session.delete()
        case Action.SNAPSHOT:
            session.snapshot()
        case Action.ERASE:
            session.erase(include_forks=rule.include_forks, reason=f"retention: {rule.name}"[:256])


def _print(report: Report, rules: Sequence[Rule], dry_run: bool) -> None:
    from foldlog.cli.terminal import printable

    would = "would be " if dry_run else ""
    done = {Action.DELETE: "deleted", Action.SNAPSHOT: "snapshotted", Action.ERASE: "erased"}
    for rule in rules:
        count = f"{report.done[rule.name]:,} of {report.matched[rule.name]:,}"
        typer.echo(f"{printable(rule.name)}: {count} sessions {would}{done[rule.action]}")
    for name, session_id, why in report.refused:
        typer.echo(printable(f"{name}: {session_id} was refused: {why}"), err=True)
