"""Every request that was sent is made again from the log, and the cache report says what broke."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256

from foldlog import ChangeKind, SentRequest, Session

from demo.screen import Screen
from demo.server import Server
from demo.stepping import provider_body


def show(screen: Screen, session: Session, server: Server) -> None:
    """Restart the server, make the recorded requests again, and explain the break."""
    screen.section(
        "Rebuild every request, byte for byte",
        "The server is killed once more. What is left is the log.",
    )
    server.kill()
    server.start()
    records = [event.body for event in session.events() if isinstance(event.body, SentRequest)]
    sent = [record for record in records if record.one_shot is None]
    _claim_verified(screen, session, records, sent)
    _claim_bodies(screen, session, sent)
    screen.section(
        "Say why the cache broke",
        "A provider's prefix cache serves a request that only adds to the one before.",
    )
    _claim_explained(screen, session, server, sent)


def _claim_verified(
    screen: Screen, session: Session, records: list[SentRequest], sent: list[SentRequest]
) -> None:
    found = session.verify_requests()
    one_shots = [record.one_shot for record in records if record.one_shot is not None]
    (summary,) = one_shots
    screen.claim(
        found.ok and found.verified_count == len(sent) and found.skipped_count == 1,
        f"{len(sent)} requests were recorded, and each is found again in the stored rows",
        f"beside them a one-shot request: the {summary.purpose} of seqs {summary.first_seq} to "
        f"{summary.last_seq}",
    )


def _claim_bodies(screen: Screen, session: Session, sent: list[SentRequest]) -> None:
    again = [provider_body(session.build_request(step_seq=each.step_seq)) for each in sent]
    converters = {f"{each.converter} {each.converter_version}" for each in sent}
    screen.claim(
        [sha256(body).digest() for body in again] == [each.body_sha256 for each in sent],
        f"the provider's bodies come out again too: {sum(map(len, again)):,} bytes, by "
        f"{', '.join(converters)}",
        f"such as the first one, SHA-256 {sent[0].body_sha256.hex()[:32]}…",
    )


def _claim_explained(
    screen: Screen, session: Session, server: Server, sent: list[SentRequest]
) -> None:
    screen.command(f"foldlog why {session.session_id}", _why(session.session_id, server.address))
    breaks = list(session.cache_breaks())
    replaces = [event.seq for event in session.events() if event.replace is not None]
    screen.claim(
        [(each.kind, each.cause_seq) for each in breaks] == [(ChangeKind.REPLACE, replaces[0])],
        f"of {len(sent)} requests one broke the cache, and the compaction is why",
        "neither the crash nor the new worker cost any cached prefix",
    )


def _why(session_id: str, address: str) -> str:
    command = [sys.executable, "-m", "foldlog", "why", session_id, "--address", address]
    environment = os.environ | {"NO_COLOR": "1"}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout
