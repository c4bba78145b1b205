"""Recorded agents are replayed, and read back."""

from __future__ import annotations

import time
from collections.abc import Sequence

from foldlog import Client, TurnStart

from demo.screen import Screen
from demo.transcripts import Transcript
from demo.worker import begin, replay


def show(screen: Screen, client: Client, recorded: Sequence[Transcript]) -> None:
    """Say what was recorded; replay the last two, up to a compaction if there is one."""
    screen.section(
        "Replay recorded agents",
        "Each model answer, tool result and turn is appended as it happened, in its own batch.",
    )
    columns = ["agent", ">events", ">turns", ">tool calls", ">size", "what happens"]
    screen.table(columns, [_row(transcript) for transcript in recorded])
    for transcript in recorded[1:]:
        _replay(screen, client, transcript)


def _replay(screen: Screen, client: Client, transcript: Transcript) -> None:
    batches = transcript.batches[: transcript.compaction]
    session = begin(client, transcript)
    begun = time.monotonic()
    replay(session, batches)
    took_s = time.monotonic() - begun
    sent = [event.body for batch in batches for event in batch.events]
    stored = [event.body for event in session.events()]
    screen.claim(
        stored == sent,
        f"{session.session_id}: {len(stored)} events read back are the {len(sent)} sent",
        f"{len(batches)} batches, each on disk before it was answered: "
        f"{1000 * took_s / len(batches):.1f} ms a batch",
    )


def _row(transcript: Transcript) -> tuple[str, ...]:
    both = [transcript, *([transcript.fork] if transcript.fork else [])]
    return (
        f"[cyan]{transcript.session_id}[/]",
        str(sum(len(each.events) for each in both)),
        str(sum(each.count(TurnStart) for each in both)),
        str(sum(each.tool_calls for each in both)),
        f"{sum(each.size_bytes for each in both) / 1000:.0f} kB",
        transcript.title,
    )
