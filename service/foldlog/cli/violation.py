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
    return Group(
        Text.assemble(("✗ ", "bold red"), (_title(violation), "bold red")),
        Text(f"  {meaning}"),
        Text(f"  {_place(violation)}", "dim"),
        *([_differences(violation)] if violation.extra or violation.missing else []),
        Text.assemble(("  do  ", "dim"), advice),
    )


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
    table.add_column(width=1)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for sign, style, where, sketches in (
        ("-", "red", "only in the log", violation.missing),
        ("+", "green", "only in the request", violation.extra),
    ):
        for sketch in sketches:
            role = Text(role_name(sketch.role), ROLE_STYLES.get(sketch.role, "bold red"))
            table.add_row("", Text(f"{sign} {where}", style), role, _sketch(sketch))
    return table


def _sketch(sketch: Sketch) -> Text:
    said = Text("no content" if sketch.preview is None else printable(sketch.preview))
    if sketch.preview is None:
        said.stylize("dim italic")
    for about in (
        sketch.name,
        f"{sketch.tool_calls} tool calls" if sketch.tool_calls else None,
        f"answers {sketch.tool_call_id}" if sketch.tool_call_id is not None else None,
    ):
        if about:
            said.append(f"  {printable(about)}", "dim")
    return said
