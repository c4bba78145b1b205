"""The server is killed while an agent writes, and nothing is lost or doubled."""

from __future__ import annotations

import signal

from foldlog import Appended, Client, Message, Session, errors

from demo.screen import Screen
from demo.server import Server
from demo.transcripts import Batch, Transcript
from demo.worker import DoomedWorker, append, replay

KILL_AFTER_BATCHES = 25


def show(screen: Screen, client: Client, server: Server, transcript: Transcript) -> None:
    """Replay with a kill in the middle, and go on to the transcript's end."""
    screen.section(
        "Kill the server in the middle",
        "The coding agent is at work, its calls side by side. No warning: SIGKILL.",
    )
    worker = DoomedWorker(server.address, transcript, KILL_AFTER_BATCHES)
    lost = _kill(screen, server, worker)
    screen.section("Restart, restore, go on", "A new worker takes the session over.")
    took_s = server.start()
    session = client.session(transcript.session_id)
    epoch = session.open_writer(owner="worker-2")
    _claim_kept(screen, session, worker, lost, took_s)
    _claim_restored(screen, session, transcript)
    _claim_retried(screen, session, worker, lost)
    _claim_fenced(screen, client, transcript, epoch)
    replay(session, [batch for batch in transcript.batches if batch.first_seq > lost.first_seq])
    _claim_whole(screen, session, transcript)


def _kill(screen: Screen, server: Server, worker: DoomedWorker) -> Batch:
    worker.start()
    worker.half_way.wait()
    pid, code = server.pid, server.kill()
    worker.join()
    screen.claim(
        code == -signal.SIGKILL and worker.in_flight is not None,
        f"process {pid} was killed while a batch was in flight",
        f"{len(worker.acknowledged)} batches with {worker.acknowledged_events} events were "
        "acknowledged; of the next nobody knows",
    )
    assert worker.in_flight is not None
    return worker.in_flight


def _claim_kept(
    screen: Screen, session: Session, worker: DoomedWorker, lost: Batch, took_s: float
) -> None:
    next_seq, acknowledged = session.info().next_seq, worker.acknowledged_events
    reached = next_seq == acknowledged + len(lost.events)
    screen.claim(
        reached or next_seq == acknowledged,
        f"back after {took_s:.1f} s, with each of the {acknowledged} acknowledged events",
        f"next_seq is {next_seq}: the batch in flight is {'whole' if reached else 'not'} on disk",
    )


def _claim_restored(screen: Screen, session: Session, transcript: Transcript) -> None:
    seen = session.messages()
    logged = transcript.events[: session.info().next_seq]
    sent = [event.body for event in logged if isinstance(event.body, Message)]
    screen.claim(
        [folded.message for folded in seen] == sent,
        f"what the model saw is restored: {len(seen)} messages, the last of which are",
    )
    screen.conversation(seen[-4:])


def _claim_retried(screen: Screen, session: Session, worker: DoomedWorker, lost: Batch) -> None:
    first, again = append(session, lost), append(session, lost)
    screen.claim(
        first == again == Appended(lost.first_seq, lost.first_seq + len(lost.events)),
        f"the batch in flight, sent twice more, is there once: from seq {first.first_seq}",
        f"both were sent under request id {lost.request_id(session.session_id)} and got one answer",
    )
    batch, answer = worker.acknowledged[0]
    screen.claim(
        append(session, batch) == answer and session.info().next_seq == first.next_seq,
        "a retry from long before the crash gets its first answer, and writes nothing",
        f"request id {batch.request_id(session.session_id)}: from seq {answer.first_seq}, as then",
    )


def _claim_fenced(screen: Screen, client: Client, transcript: Transcript, epoch: int) -> None:
    old = client.session(transcript.session_id)
    old.writer_epoch = epoch - 1
    try:
        old.append(*transcript.batches[-1].events)
        refusal = ""
    except errors.StaleWriterError as error:
        refusal = f"{error.reason}: {error}"
    screen.claim(bool(refusal), "the old worker, should it live, can no longer write", refusal)


def _claim_whole(screen: Screen, session: Session, transcript: Transcript) -> None:
    stored = [(event.seq, event.body) for event in session.events()]
    recorded = [event.body for event in transcript.events]
    screen.claim(
        stored == [*enumerate(recorded)],
        f"the agent went on to its end: {len(stored)} events, none lost, none doubled",
        f"compared one by one with the recording's {len(recorded)}: order, numbers, bodies",
    )
