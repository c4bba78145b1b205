"""A worker that dispatches a tool call and is killed before it logs the result.

Run as a process with the service's address and a session's id.
"""

from __future__ import annotations

import sys
from pathlib import Path

import foldlog


def work(address: str, session_id: str, effects: Path) -> None:
    """Log a turn up to a dispatch, let the tool have its effect, and wait for the end."""
    client = foldlog.Client(address)
    session = client.session(session_id)
    session.open_writer("the first worker")
    calls = [foldlog.ToolCall(id_, "charge", "{}") for id_ in ("c1", "c2")]
    session.append(
        foldlog.turn_start(1),
        foldlog.user("charge 10, twice"),
        foldlog.request_header(foldlog.Header(provider="p", model="m")),
        foldlog.step_start(1),
        foldlog.assistant(None, tool_calls=calls),
    )
    session.append(foldlog.tool_call("c1", name="charge", idempotency_key="charge-1"))
    effects.write_text("charged 10")
    print("dispatched", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    work(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
