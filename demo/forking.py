"""A session is forked where two explanations were open."""

from __future__ import annotations

import time

from foldlog import Client, Diff, FoldedMessage, Message, Session

from demo.screen import Screen, gist
from demo.transcripts import Transcript
from demo.worker import replay


def show(screen: Screen, client: Client, transcript: Transcript) -> None:
    """Fork, replay what the fork did, and compare the two."""
    screen.section(
        "Fork where the road divides",
        "The research agent had two explanations. A fork follows the second one.",
    )
    other = transcript.fork
    assert other is not None
    session = client.session(transcript.session_id)
    child = _fork(screen, session, other)
    replay(child, other.batches)
    difference = session.diff(child)
    screen.claim(
        difference.shared_seq == other.at_seq and len(difference.right) == other.count(Message),
        f"{difference.common_count} messages in common; then each went its own way",
        *_conclusions(difference),
    )


def _fork(screen: Screen, session: Session, other: Transcript) -> Session:
    assert other.at_seq is not None
    shared = session.messages(at_seq=other.at_seq)
    begun = time.monotonic()
    child = session.fork(other.at_seq, other.session_id, labels=other.labels)
    took = time.monotonic() - begun
    # Beside its events, a session has a row that says how it began.
    rows, parents_rows = child.verify().row_count, other.at_seq + 2
    size = sum(len(str(folded.message.content or "")) for folded in shared)
    screen.claim(
        child.messages() == shared and rows == parents_rows + 1,
        f"forked at seq {other.at_seq} in {1000 * took:.0f} ms, as one stored row",
        f"{rows} rows make the fork, {parents_rows} of them its parent's; {size / 1000:.0f} kB of "
        "text are read where they are",
    )
    return child


def _conclusions(difference: Diff) -> tuple[str, str]:
    here, there = _longest(difference.left), _longest(difference.right)
    return (
        f"{len(difference.left):>2} here:  {gist(here.message, 56)}",
        f"{len(difference.right):>2} there: {gist(there.message, 56)}",
    )


def _longest(messages: tuple[FoldedMessage, ...]) -> FoldedMessage:
    said = [m for m in messages if not m.message.tool_calls and m.message.tool_call_id is None]
    return max(said, key=lambda folded: len(folded.message.content or ""))
