"""A violation as a person understands it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from foldlog.cli.documents import role_name
from foldlog.cli.terminal import printable
from foldlog.cli.transcript import ROLE_STYLES
from foldlog.core.invariant import Sketch, Violation, ViolationKind
from foldlog.core.message import Role

if TYPE_CHECKING:
    from rich.console import RenderableType

# What each kind means, and what to do about it.
MEANING: dict[ViolationKind, tuple[str, str]] = {
    ViolationKind.MISSING_MESSAGE: (
        "The log has a message that the request lacks, or has with other content.",
        "Build the request from the log's messages. If it was shortened on purpose, log that first,"
        " as a replace or a rewind.",
    ),
    ViolationKind.EXTRA_MESSAGE: (
        "The request has a message that the log does not.",
        "Append it before the request is sent.",
    ),
    ViolationKind.ORDER: (
        "The request has the log's messages in another order.",
        "Send them in the order of the log.",
    ),
    ViolationKind.ORPHANED_TOOL_RESULT: (
        "A tool result answers no call that stands before it in the request.",
        "Keep the call and its result together: both in the request, or both replaced.",
    ),
    ViolationKind.HEADER_MISMATCH: (
        "The messages are right; what stands around them is not what the log has.",
        "Append a request header with the new values before the request is sent.",
    ),
    ViolationKind.UNANSWERED_TOOL_CALL: (
        "A tool call has no result in the request.",
        "Append the result, or one that says that the tool did not answer.",
    ),
    ViolationKind.BYTES_DIFFER: (
        "The same JSON in other bytes: providers count it as another prompt and cache nothing.",
        "Send the bytes of the log.",
    ),
}
UNKNOWN = ("A kind of a newer release.", "Upgrade this client.")


def explained(violation: Violation) -> RenderableType:
    """Return the kind, the place, what differs, and what to do."""
    meaning, advice = MEANING.get(violation.kind, UNKNOWN)
    rows = Table.grid(padding=(0, 2))
    rows.add_row("", meaning)
    if violation.kind is not ViolationKind.HEADER_MISMATCH:
        rows.add_row("", Text(_place(violation), "dim"))
    if violation.extra or violation.missing:
        rows.add_row("", _differences(violation))
    rows.add_row("", Text.assemble(("What to do: ", "bold"), advice))
    return Group(Text(f"✗ {_title(violation)}", "bold red"), rows)


def _title(violation: Violation) -> str:
    about = ""
    if violation.header_fields:
        about = f": {', '.join(violation.header_fields)}"
    elif violation.tool_call_id is not None:
        about = f": {printable(violation.tool_call_id)}"
    kind = violation.kind
    return f"{kind.name.lower().replace('_', ' ').capitalize()}{about}"


def _place(violation: Violation) -> str:
    """Say where: counting from 1, as people do, a skipped system message left out."""
    at = violation.index + 1
    where = f"message {at}" if at <= violation.request_length else "after the last message"
    lengths = f"the request has {violation.request_length}, the log {violation.log_length}"
    in_log = "" if violation.log_seq is None else f"; in the log: event {violation.log_seq}"
    return f"At {where} ({lengths}){in_log}."


def _differences(violation: Violation) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    same = _same_beginning(violation)
    for sign, style, where, sketches in (
        ("-", "red", "only in the log", violation.missing),
        ("+", "green", "only in the request", violation.extra),
    ):
        for sketch in sketches:
            role = Text(role_name(sketch.role), ROLE_STYLES.get(sketch.role, "bold red"))
            table.add_row(Text(f"{sign} {where}", style), role, _sketch(sketch, same, style))
    return table


def _same_beginning(violation: Violation) -> int | None:
    """Return how many characters two messages that stand for each other begin with in common."""
    match violation.missing, violation.extra:
        case (Sketch(preview=str(log)),), (Sketch(preview=str(request)),):
            pairs = enumerate(zip(log, request, strict=False))
            return next((i for i, (a, b) in pairs if a != b), min(len(log), len(request)))
    return None


def _sketch(sketch: Sketch, same: int | None, style: str) -> Text:
    said = _preview(sketch)
    if same is not None and sketch.preview:
        # Escaped characters are longer: what is the same is measured as it is shown.
        said.stylize(f"{style} underline", len(printable(sketch.preview[:same])))
    for about in (
        sketch.name,
        _calls(sketch.tool_calls),
        f"answers {sketch.tool_call_id}" if sketch.tool_call_id is not None else None,
    ):
        if about:
            said.append(f"  {printable(about)}", "dim")
    return said


def _calls(count: int) -> str:
    return "" if not count else "1 tool call" if count == 1 else f"{count} tool calls"


def _preview(sketch: Sketch) -> Text:
    if sketch.role == Role.SYSTEM:
        return Text("whatever it says", "dim italic")
    if sketch.preview is None:
        return Text("" if sketch.tool_calls else "no content", "dim italic")
    return Text(printable(sketch.preview)) if sketch.preview else Text("empty text", "dim italic")
