"""The demo is run as a person runs it, and its database is then looked at without it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import foldlog
import pytest

from demo.transcripts import Transcript, load
from tests.served import Served

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("coding_agent", "support_agent", "research_agent")
KINDS = ("MISSING_MESSAGE", "EXTRA_MESSAGE", "ORDER", "ORPHANED_TOOL_RESULT", "HEADER_MISMATCH")


@dataclass(frozen=True)
class Told:
    """What the demo printed, and a client on the database it left."""

    text: str
    client: foldlog.Client


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    """One run of the demo, and a server on its database afterwards."""
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [sys.executable, "-m", "demo", "--folder", str(folder)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "service"), "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    served = Served(f"sqlite:///{folder / 'foldlog.db'}", folder).start()
    with foldlog.Client(served.address) as client:
        yield Told(done.stdout, client)
    served.close()


def bodies(told: Told, session_id: str) -> list[object]:
    """Return the bodies of a session's events."""
    return [event.body for event in told.client.session(session_id).events()]


@pytest.mark.parametrize("name", NAMES)
def test_every_event_of_the_transcript_is_stored_once_and_in_order(told: Told, name: str) -> None:
    transcript = load(name)
    assert bodies(told, transcript.session_id) == [event.body for event in transcript.events]


def test_the_transcripts_hold_more_than_300_events() -> None:
    assert sum(len(t.events) for t in transcripts()) > 300


def transcripts() -> list[Transcript]:
    """Return the shipped transcripts."""
    return [load(name) for name in NAMES]


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_violation_is_told(told: Told, kind: str) -> None:
    assert kind in told.text


def test_the_compacted_session_has_its_originals_in_a_fork(told: Told) -> None:
    transcript = load("support_agent")
    assert transcript.compaction is not None
    at = transcript.batches[transcript.compaction].first_seq
    compacted = told.client.session(transcript.session_id)
    originals = told.client.session("support-agent-originals")
    assert originals.messages() == compacted.messages(at_seq=at - 1)
    assert compacted.messages()[0].seq == at


def test_the_fork_reads_its_parent_and_went_its_own_way(told: Told) -> None:
    transcript = load("research_agent")
    assert transcript.fork is not None
    child = told.client.session(transcript.fork.session_id)
    parent = told.client.get(transcript.fork.session_id).parent
    assert parent == foldlog.ForkPoint(transcript.session_id, transcript.fork.at_seq or 0)
    shared = transcript.events[: (transcript.fork.at_seq or 0) + 1]
    expected = [event.body for event in (*shared, *transcript.fork.events)]
    assert [event.body for event in child.events()] == expected


def test_the_session_was_taken_over_by_the_second_worker(told: Told) -> None:
    assert told.client.get("coding-agent").writer_epoch == 2


def test_every_session_is_intact(told: Told) -> None:
    found = [told.client.session(info.session_id).verify() for info in told.client.list()]
    assert len(found) >= 5
    assert all(each.intact for each in found)
