"""The demo is run as a person runs it, and its database is then looked at without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import foldlog
import pytest
from foldlog.converters import Converted, openai_chat

from demo.transcripts import Transcript, load
from tests.served import Served

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("coding_agent", "support_agent", "research_agent")
KINDS = ("MISSING_MESSAGE", "EXTRA_MESSAGE", "ORDER", "ORPHANED_TOOL_RESULT", "HEADER_MISMATCH")
IN_STEPS = "support-agent-in-steps"
PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Told:
    """What the demo printed, a client on the database it left, and what else it left."""

    text: str
    client: foldlog.Client
    folder: Path


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
        yield Told(done.stdout, client, folder)
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


def records(told: Told) -> list[foldlog.SentRequest]:
    """Return what was recorded of the requests of the agent that works in steps."""
    found = bodies(told, IN_STEPS)
    return [body for body in found if isinstance(body, foldlog.SentRequest)]


def test_the_calls_of_the_killed_worker_got_marked_results(told: Told) -> None:
    messages = [folded.message for folded in told.client.session(IN_STEPS).messages()]
    notes = [json.loads(message.metadata_json or "{}") for message in messages]
    found = [
        (message.name, note["risk"])
        for message, note in zip(messages, notes, strict=True)
        if note.get("synthetic")
    ]
    assert found == [
        ("send_email", "tool_outcome_unknown"),
        ("get_order", "tool_not_started"),
        ("search_help", "tool_not_started"),
    ]


def test_the_killed_workers_turn_is_closed_and_the_session_taken_over(told: Told) -> None:
    session = told.client.session(IN_STEPS)
    assert foldlog.TurnEnd(6, "interrupted") in bodies(told, IN_STEPS)
    assert not session.plan_recovery().interrupted
    assert session.info().writer_epoch == 2


def test_no_call_of_any_session_is_left_unresolved(told: Told) -> None:
    assert list(told.client.unresolved_calls()) == []


def test_the_call_that_was_made_again_had_its_effect_once(told: Told) -> None:
    calls = [body for body in bodies(told, IN_STEPS) if isinstance(body, foldlog.ToolCallState)]
    emails = [call for call in calls if call.name == "send_email" and call.idempotency_key]
    assert len(emails) == 2
    sent = (told.folder / "outbox").read_text().splitlines()
    assert sent == list({call.idempotency_key for call in emails})


def test_each_step_has_a_record_of_its_request(told: Told) -> None:
    events = list(told.client.session(IN_STEPS).events())
    steps = [event.seq for event in events if isinstance(event.body, foldlog.StepStart)]
    assert [each.step_seq for each in records(told) if each.one_shot is None] == steps
    assert len(steps) > 15


def test_every_recorded_request_is_made_again_from_the_stored_rows(told: Told) -> None:
    found = told.client.session(IN_STEPS).verify_requests()
    assert found.ok
    assert found.verified_count == len(records(told)) - 1
    assert found.skipped_count == 1  # the summary, which is no step


def test_every_provider_body_comes_out_again(told: Told) -> None:
    session = told.client.session(IN_STEPS)
    for record in records(told):
        if record.one_shot is None:
            built = session.build_request(step_seq=record.step_seq, independent=True)
            request = openai_chat.to_request(Converted.of(built.messages, built.header))
            body = json.dumps(request, ensure_ascii=False).encode()
            assert sha256(body).digest() == record.body_sha256


def test_the_one_cache_break_is_the_compactions(told: Told) -> None:
    session = told.client.session(IN_STEPS)
    (found,) = session.cache_breaks()
    (compaction,) = (event.seq for event in session.events() if event.replace)
    assert (found.kind, found.cause_seq) == (foldlog.ChangeKind.REPLACE, compaction)
    assert found.lost_messages == found.previous_messages
    assert f"{found.lost_bytes:,} bytes, about {found.lost_tokens:,} tokens" in told.text


def test_the_attachments_are_stored_and_the_trimmed_result_is_whole_in_its_own(told: Told) -> None:
    messages = told.client.session("research-agent-with-chart").messages()
    contents = [each.message.content for each in messages]
    parts = [part for content in contents if isinstance(content, tuple) for part in content]
    named = [part for part in parts if isinstance(part, foldlog.AttachmentPart)]
    table, image = (told.client.read_attachment(part.sha256) for part in named)
    assert image.startswith(PNG)
    results = [each.message.content for each in told.client.session("research-agent").messages()]
    assert table.decode() in results


def test_every_session_is_intact(told: Told) -> None:
    found = [told.client.session(info.session_id).verify() for info in told.client.list()]
    assert len(found) >= 9
    assert all(each.intact for each in found)
