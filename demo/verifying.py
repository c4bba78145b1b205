"""A log is restored elsewhere, and every chain is recomputed."""

from __future__ import annotations

from foldlog import Client, SessionInfo, Verification

from demo.screen import Screen
from demo.transcripts import Transcript


def show(screen: Screen, client: Client, transcript: Transcript) -> None:
    """Restore the transcript's log into a new session, and verify every session."""
    screen.section(
        "Verify", "Each stored row carries a SHA-256 over all before it, forks included."
    )
    _restore(screen, client, transcript)
    sessions = sorted(client.list(), key=lambda info: info.create_time_ns)
    found = [(info, client.session(info.session_id).verify()) for info in sessions]
    screen.table(
        ["session", ">events", ">rows", "chain", ""], [_row(info, each) for info, each in found]
    )
    screen.claim(
        all(each.intact for _, each in found),
        f"{len(found)} sessions, every row as it was written",
    )


def _restore(screen: Screen, client: Client, transcript: Transcript) -> None:
    original = client.session(transcript.session_id)
    copy = client.create(f"{transcript.session_id}-restored")
    restored = copy.restore(original.events())
    screen.claim(
        copy.messages() == original.messages(),
        "a log restored elsewhere folds to the same list",
        f"{restored.count} events under their own numbers, next_seq {restored.next_seq}",
    )


def _row(info: SessionInfo, verification: Verification) -> tuple[str, ...]:
    return (
        info.session_id,
        str(info.next_seq),
        str(verification.row_count),
        verification.chain.hex()[:16],
        "[green]intact[/]" if verification.intact else "[red]damaged[/]",
    )
