"""A conversation is compacted, and its originals are brought back."""

from __future__ import annotations

from collections.abc import Sequence

from foldlog import Client, FoldedMessage, Message, Session

from demo.screen import Screen, gist
from demo.transcripts import Transcript
from demo.worker import append, replay


def show(screen: Screen, client: Client, transcript: Transcript) -> None:
    """Append the compaction, fork from before it, and replay what follows."""
    screen.section(
        "Compact, and lose nothing",
        "A summary takes the place of five turns on the model's list. The log keeps them.",
    )
    at = transcript.compaction
    assert at is not None
    session = client.session(transcript.session_id)
    before = session.messages()
    _compact(screen, session, transcript, at)
    fork = session.fork(session.messages()[0].seq - 1, "support-agent-originals")
    screen.claim(
        fork.messages() == before,
        f"a fork from before it has all {len(before)} originals back",
        f"{fork.session_id} begins: {gist(before[0].message, 48)}",
    )
    later = transcript.batches[at + 1 :]
    replay(session, later)
    surface = [e.body for batch in later for e in batch.events if isinstance(e.body, Message)]
    now = session.messages()
    screen.claim(
        [folded.message for folded in now[1:]] == surface and fork.messages() == before,
        f"the agent went on from the summary: {len(now)} messages; the fork did not notice",
        f"the last one: {gist(now[-1].message)}",
    )


def _compact(screen: Screen, session: Session, transcript: Transcript, at: int) -> None:
    before = session.messages()
    done = append(session, transcript.batches[at])
    after = session.messages()
    screen.table(
        ["", ">messages", ">characters", "begins"],
        [_row("before", before), _row("after", after)],
    )
    shadowed = done.replaces[0].shadowed_seqs
    screen.claim(
        [folded.seq for folded in before] == [*shadowed] and len(after) == 1,
        f"one message stands for {len(shadowed)}: seq {after[0].seq}, at position "
        f"{after[0].position}",
        f"shadowed and still logged: seqs {', '.join(map(str, shadowed[:6]))} … {shadowed[-1]}",
    )


def _row(name: str, messages: Sequence[FoldedMessage]) -> tuple[str, ...]:
    size = sum(len(str(folded.message.content or "")) for folded in messages)
    return (name, str(len(messages)), f"{size:,}", gist(messages[0].message, 44))
