"""The check: one right request, and one wrong request for each kind of violation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from foldlog import (
    CheckResult,
    Header,
    Message,
    Role,
    Session,
    Sketch,
    Violation,
    ViolationKind,
    errors,
    replacing,
    user,
)

from demo.screen import Screen


@dataclass(frozen=True, slots=True)
class Case:
    """A request, how it came about, and the verdict it is to get."""

    story: str
    session: Session
    messages: Sequence[Message]
    header: Header
    expected: ViolationKind | None


def show(screen: Screen, session: Session) -> None:
    """Check a right request and a wrong one of each kind, and print each verdict."""
    screen.section(
        "Check requests before they are sent",
        "Can the log account for the request? If not, what exactly is wrong with it?",
    )
    cases = _cases(session)
    results = [case.session.check(case.messages, case.header) for case in cases]
    screen.table(
        ["request", "verdict", "what it says"],
        [_row(case, result) for case, result in zip(cases, results, strict=True)],
    )
    kinds = [result.violation.kind if result.violation else None for result in results]
    screen.claim(
        kinds == [case.expected for case in cases] and results[0].ok,
        f"the right request passes, each of the {len(cases) - 1} wrong ones is told for what it is",
    )
    _claim_strict(screen, session, cases[1])


def _cases(session: Session) -> list[Case]:
    request = [folded.message for folded in session.messages()]
    header = session.header()
    results = [i for i, message in enumerate(request) if message.role == Role.TOOL]
    first, second = results[0], results[1]
    swapped = [*request]
    swapped[first], swapped[second] = swapped[second], swapped[first]
    careless = _compact_carelessly(session, first)
    torn = [folded.message for folded in careless.messages()]
    injected = [*request, user("(Hint: be brief.)")]
    kind = ViolationKind
    return [
        Case("as the log has it", session, request, header, None),
        Case(
            "a tool result trimmed away",
            session,
            [*request[:first], *request[first + 1 :]],
            header,
            kind.MISSING_MESSAGE,
        ),
        Case("a hint slipped in", session, injected, header, kind.EXTRA_MESSAGE),
        Case("parallel results swapped", session, swapped, header, kind.ORDER),
        Case(
            "a compaction split a pair",
            careless,
            torn,
            header,
            kind.ORPHANED_TOOL_RESULT,
        ),
        Case(
            "another model since a deploy",
            session,
            request,
            replace(header, model="claude-haiku-4-5"),
            kind.HEADER_MISMATCH,
        ),
    ]


def _compact_carelessly(session: Session, first_result: int) -> Session:
    """Return a fork in which a summary shadows a call and not its results."""
    fork = session.fork(session_id=f"{session.session_id}-careless")
    folded = fork.messages()
    summary = user("[Summary] A bug in billing periods was found.")
    last = folded[first_result - 1].seq
    fork.append(replacing(summary, first_seq=folded[0].seq, last_seq=last))
    return fork


def _row(case: Case, result: CheckResult) -> tuple[str, str, str]:
    if result.violation is None:
        return (case.story, "[green]derivable[/]", f"{len(case.messages)} messages, and the header")
    return (case.story, f"[red]{result.violation.kind.name}[/]", _told(result.violation))


def _told(violation: Violation) -> str:
    match violation.kind:
        case ViolationKind.MISSING_MESSAGE:
            sketch = violation.missing[0]
            return f"at {violation.index}: lacks a {_speaker(sketch)}"
        case ViolationKind.EXTRA_MESSAGE:
            sketch = violation.extra[0]
            return f"at {violation.index}: {_speaker(sketch)} says “{sketch.preview}”"
        case ViolationKind.ORDER:
            return f"differs first at {violation.index}"
        case ViolationKind.ORPHANED_TOOL_RESULT:
            return f"at {violation.index}: a result, but no call before it"
        case _:
            return "differs in " + ", ".join(violation.header_fields)


def _speaker(sketch: Sketch) -> str:
    return f"{sketch.name} result" if sketch.role == Role.TOOL else Role(sketch.role).name.lower()


def _claim_strict(screen: Screen, session: Session, wrong: Case) -> None:
    try:
        session.check(wrong.messages, mode="strict")
        refused = ""
    except errors.RequestNotDerivableError as error:
        refused = f"RequestNotDerivableError: {error}"
    screen.claim(bool(refused), "in mode strict the call fails, so that nothing is sent", refused)
