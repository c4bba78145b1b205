"""The story: what is done, and what is claimed about it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from foldlog import Appended, Client, FoldedMessage, Message, Session, errors

from demo import checks
from demo.screen import Screen
from demo.server import Server
from demo.transcripts import Batch, Transcript, load
from demo.worker import DoomedWorker, append, begin, replay

KILL_AFTER_BATCHES = 25


class Story:
    """One run: a server, a client, three transcripts and the sessions they become."""

    def __init__(self, screen: Screen, folder: Path) -> None:
        self.screen = screen
        self.server = Server(folder)
        self.coder = load("coding_agent")
        self.supporter = load("support_agent")
        self.researcher = load("research_agent")

    def tell(self) -> None:
        """Tell all of it. Raises ClaimError at the first claim that does not hold."""
        begun = time.monotonic()
        self.screen.title(
            "Foldlog, shown on three recorded agents",
            "A claim that does not hold ends the demo with an error.",
        )
        self.serve()
        with Client(self.server.address) as self.client:
            self.replay()
            self.kill()
            self.compact()
            self.fork()
            checks.show(self.screen, self.client, self.coder.session_id)
            self.verify()
        self.screen.note("")
        took = time.monotonic() - begun
        self.screen.note(f"All {self.screen.claims} claims held, in {took:.1f} s.", "bold green")

    def serve(self) -> None:
        """Start the server."""
        self.screen.section("Serve", "One process and one SQLite file, with nothing to set up.")
        took = self.server.start()
        self.screen.claim(
            took > 0,
            f"serving at {self.server.address} after {took:.1f} s",
            f"foldlog serve --database-url sqlite:///{self.server.database}",
        )

    def replay(self) -> None:
        """Replay two agents up to where more is to come."""
        self.screen.section(
            "Replay recorded agents",
            "Each model answer, tool result and turn is appended as it happened, in its own batch.",
        )
        recorded = [self.coder, self.supporter, self.researcher]
        self.screen.table(
            ["agent", ">events", ">turns", ">tool calls", ">size", "what happens"],
            [_row(t) for t in recorded],
        )
        before = self.supporter.batches[: self.supporter.compaction]
        for transcript, batches in (
            (self.supporter, before),
            (self.researcher, self.researcher.batches),
        ):
            session = begin(self.client, transcript)
            begun = time.monotonic()
            replay(session, batches)
            self._claim_same(session, batches, time.monotonic() - begun)

    def _claim_same(self, session: Session, batches: tuple[Batch, ...], took_s: float) -> None:
        sent = [event for batch in batches for event in batch.events]
        stored = [event.body for event in session.events()]
        self.screen.claim(
            stored == [event.body for event in sent],
            f"{session.session_id}: {len(stored)} events read back are the {len(sent)} sent",
            f"{len(batches)} batches, each on disk before it was answered: "
            f"{1000 * took_s / len(batches):.1f} ms a batch",
        )

    def kill(self) -> None:
        """Kill the server while the coding agent writes, and go on."""
        self.screen.section(
            "Kill the server in the middle", "The coding agent is at work. No warning, SIGKILL."
        )
        worker = DoomedWorker(self.server.address, self.coder, KILL_AFTER_BATCHES)
        worker.start()
        worker.half_way.wait()
        pid, code = self.server.pid, self.server.kill()
        worker.join()
        lost = worker.in_flight
        acknowledged = sum(len(batch.events) for batch, _ in worker.acknowledged)
        self.screen.claim(
            code == -9 and lost is not None,
            f"process {pid} was killed with a batch in flight",
            f"{len(worker.acknowledged)} batches ({acknowledged} events) were acknowledged; nobody "
            "knows about the next",
        )
        assert lost is not None
        took = self.server.start()
        self._recover(worker, lost, acknowledged, took)

    def _recover(self, worker: DoomedWorker, lost: Batch, acknowledged: int, took_s: float) -> None:
        self.screen.section("Restart, restore, go on", "A new worker takes the session over.")
        session = self.client.session(self.coder.session_id)
        epoch = session.open_writer(owner="worker-2")
        found = session.info().next_seq
        reached = found == acknowledged + len(lost.events)
        self.screen.claim(
            reached or found == acknowledged,
            f"back after {took_s:.1f} s with each of the {acknowledged} acknowledged events",
            f"next_seq is {found}: the batch in flight was {'whole' if reached else 'not'} on disk",
        )
        self._claim_restored(session, found)
        self._retry(worker, session, lost)
        self._claim_fenced(epoch)
        replay(session, [b for b in self.coder.batches if b.first_seq > lost.first_seq])
        stored = list(session.events())
        self.screen.claim(
            [event.body for event in stored] == [event.body for event in self.coder.events]
            and [event.seq for event in stored] == list(range(len(self.coder.events))),
            f"the agent went on to its end: {len(stored)} events, none lost, none doubled",
            "compared one by one with the recording: order, bodies, numbers",
        )

    def _claim_restored(self, session: Session, count: int) -> None:
        seen = [folded.message for folded in session.messages()]
        sent = [e.body for e in self.coder.events[:count] if isinstance(e.body, Message)]
        self.screen.claim(
            seen == sent,
            f"the model's list is restored: {len(seen)} messages, as they were",
            f"the last one: {_gist(seen[-1])}",
        )

    def _retry(self, worker: DoomedWorker, session: Session, lost: Batch) -> None:
        first = append(session, lost)
        again = append(session, lost)
        self.screen.claim(
            first == again == _answer(lost),
            f"the batch in flight, retried twice under its request id, is there once: seq "
            f"{first.first_seq} to {first.next_seq - 1}",
            f"request id {lost.request_id(session.session_id)}; both retries got the same answer",
        )
        batch, answer = worker.acknowledged[0]
        self.screen.claim(
            append(session, batch) == answer and session.info().next_seq == first.next_seq,
            "a retry from before the crash gets its first answer, and writes nothing",
            f"request id {batch.request_id(session.session_id)}: seq {answer.first_seq} to "
            f"{answer.next_seq - 1}, as then",
        )

    def _claim_fenced(self, epoch: int) -> None:
        old = self.client.session(self.coder.session_id)
        old.writer_epoch = epoch - 1
        refusal = _refusal(lambda: append(old, Batch(10_000, self.coder.batches[-1].events)))
        self.screen.claim(
            refusal is not None,
            "the old worker, should it still live, can no longer write",
            refusal or "",
        )

    def compact(self) -> None:
        """Compact the support agent's session, and bring the originals back in a fork."""
        self.screen.section(
            "Compact, and lose nothing",
            "A summary takes the place of five turns on the model's list. The log keeps them.",
        )
        session = self.client.session(self.supporter.session_id)
        before = session.messages()
        at = self.supporter.compaction
        done = append(session, self.supporter.batches[at])
        after = session.messages()
        self.screen.table(
            ["", ">messages", ">characters", "the list begins with"],
            [_list_row("before", before), _list_row("after", after)],
        )
        shadowed = done.replaces[0].shadowed_seqs
        self.screen.claim(
            shadowed == tuple(m.seq for m in before) and len(after) == 1,
            f"the summary, seq {done.first_seq}, stands at position {after[0].position} for "
            f"{len(shadowed)} messages",
            f"shadowed: seqs {shadowed[0]} to {shadowed[-1]}",
        )
        fork = session.fork(at_seq=done.first_seq - 1, session_id="support-agent-originals")
        self.screen.claim(
            fork.messages() == before,
            f"a fork from before it has all {len(before)} originals back",
            f"{fork.session_id}, at seq {done.first_seq - 1}: {_gist(before[0].message)}",
        )
        replay(session, self.supporter.batches[at + 1 :])
        self.screen.claim(
            len(session.messages()) == len(after) + self._surface_after(at)
            and fork.messages() == before,
            f"the agent went on from the summary: {len(session.messages())} messages; the fork did "
            "not notice",
            f"the last one: {_gist(session.messages()[-1].message)}",
        )

    def _surface_after(self, at: int) -> int:
        later = self.supporter.batches[at + 1 :]
        return sum(isinstance(e.body, Message) for batch in later for e in batch.events)

    def fork(self) -> None:
        """Fork the research agent where two explanations were open."""
        other = self.researcher.fork
        assert other is not None
        assert other.at_seq is not None
        self.screen.section(
            "Fork where the road divides",
            "The research agent had two explanations. A fork follows the second from there.",
        )
        session = self.client.session(self.researcher.session_id)
        begun = time.monotonic()
        child = session.fork(other.at_seq, other.session_id, labels=other.labels)
        took = time.monotonic() - begun
        self.screen.claim(
            child.messages() == session.messages(at_seq=other.at_seq),
            f"forked at seq {other.at_seq} in {1000 * took:.0f} ms, as one stored row",
            f"the child reads {self.researcher.size_bytes / 1000:.0f} kB of its parent in place",
        )
        replay(child, other.batches)
        difference = session.diff(child)
        self.screen.claim(
            (difference.shared_seq, len(difference.right)) == (other.at_seq, other.count(Message)),
            f"{difference.common_count} messages in common, then {len(difference.left)} here and "
            f"{len(difference.right)} there",
            f"here:  {_gist(difference.left[-3].message)}\n"
            f"  there: {_gist(difference.right[-1].message)}",
        )

    def verify(self) -> None:
        """Verify the chain of every session, and move one by restoring its log."""
        self.screen.section(
            "Verify", "Each stored row carries a SHA-256 over all before it, forks included."
        )
        original = self.client.session(self.coder.session_id)
        copy = self.client.create("coding-agent-restored")
        restored = copy.restore(original.events())
        self.screen.claim(
            copy.messages() == original.messages(),
            f"a log restored elsewhere folds to the same list: {restored.count} events under their "
            "own numbers",
        )
        sessions = sorted(self.client.list(), key=lambda info: info.create_time_ns)
        found = [(info, self.client.session(info.session_id).verify()) for info in sessions]
        self.screen.table(
            ["session", ">events", ">rows", "chain", ""],
            [
                (
                    info.session_id,
                    str(info.next_seq),
                    str(each.row_count),
                    each.chain.hex()[:16],
                    "[green]intact[/]" if each.intact else "[red]damaged[/]",
                )
                for info, each in found
            ],
        )
        self.screen.claim(
            all(each.intact for _, each in found),
            f"{len(found)} sessions, every row as it was written",
        )


def _answer(batch: Batch) -> Appended:
    return Appended(batch.first_seq, batch.first_seq + len(batch.events))


def _refusal(call: Callable[[], object]) -> str | None:
    try:
        call()
    except errors.StaleWriterError as error:
        return f"{error.reason}: {error}"
    return None


def _row(transcript: Transcript) -> tuple[str, ...]:
    both = [transcript, *([transcript.fork] if transcript.fork else [])]
    turns = sum(e.body.__class__.__name__ == "TurnStart" for t in both for e in t.events)
    return (
        f"[cyan]{transcript.session_id}[/]",
        str(sum(len(t.events) for t in both)),
        str(turns),
        str(sum(t.tool_calls for t in both)),
        f"{sum(t.size_bytes for t in both) / 1000:.0f} kB",
        transcript.title,
    )


def _list_row(name: str, messages: list[FoldedMessage]) -> tuple[str, ...]:
    size = sum(len(str(folded.message.content or "")) for folded in messages)
    return (name, str(len(messages)), f"{size:,}", _gist(messages[0].message, 48))


def _gist(message: Message, length: int = 72) -> str:
    text = message.content if isinstance(message.content, str) else ""
    calls = ", ".join(f"{call.name}(…)" for call in message.tool_calls)
    words = " ".join(f"{text} {calls}".split())
    return words if len(words) <= length else words[: length - 1] + "…"
