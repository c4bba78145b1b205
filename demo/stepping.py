"""An agent worker that works in steps: what it sends is what the log gives, checked and recorded.

Run as a program it is a worker that dies: it answers a customer as far as a tool that sends mail,
and waits there for the end.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from foldlog import (
    Body,
    BuiltRequest,
    CheckResult,
    Client,
    Header,
    HeaderSnapshot,
    Message,
    Session,
    Step,
    StepStart,
    ToolCallState,
    replacing,
)
from foldlog.converters import Converted, openai_chat

from demo.mail import Mail
from demo.transcripts import Batch, Transcript, load

TRANSCRIPT = "support_agent"
SESSION_ID = "support-agent-in-steps"
RISKY_TOOL = "send_email"


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as it went to the provider, and what the check had said of it."""

    step: Step
    body: bytes
    checked: CheckResult


class Stepper:
    """Does what a transcript's agent did, in steps of its own."""

    def __init__(self, session: Session, header: Header) -> None:
        self._session = session
        self._header = header

    def work(self, batches: Iterable[Batch]) -> None:
        """Do what the batches say, one after the other."""
        for batch in batches:
            self._take(batch)

    def _take(self, batch: Batch) -> None:
        bodies = [event.body for event in batch.events]
        match bodies:
            case [HeaderSnapshot(header)]:
                self._header = header
            case [*before, StepStart(number)]:
                self.begin(before, number)
            case [Message() as summary] if batch.events[0].replace:
                self._compact(summary)
            case _:
                self._session.append(*bodies)

    def begin(self, before: Iterable[Body], number: int | None) -> Sent:
        """End what ended before a step, begin it with what enters, and send its request."""
        entering = [body for body in before if isinstance(body, Message)]
        ended = [body for body in before if not isinstance(body, Message)]
        self._session.append(*ended)
        step = self._session.begin_step(*entering, header=self._header, number=number)
        return self._send(step)

    def _send(self, step: Step) -> Sent:
        body = provider_body(step.request)
        leaving = openai_chat.from_request(json.loads(body))
        checked = self._session.check(leaving.messages, self._header, mode="strict")
        self._session.record_request(
            step.request,
            body=body,
            converter=openai_chat.name,
            converter_version=openai_chat.version,
        )
        return Sent(step, body, checked)

    def _compact(self, summary: Message) -> None:
        """Put a summary in the place of all there is, and record the request that made it."""
        seen = self._session.messages()
        first, last = seen[0].seq, seen[-1].seq
        self._session.record_one_shot(
            "summary",
            provider=self._header.provider,
            model=self._header.model,
            first_seq=first,
            last_seq=last,
        )
        self._session.append(replacing(summary, first_seq=first, last_seq=last))


def provider_body(request: BuiltRequest) -> bytes:
    """Return the provider's body of a request, as the converter makes it."""
    converted = Converted.of(request.messages, request.header)
    return json.dumps(openai_chat.to_request(converted), ensure_ascii=False).encode()


def risky(transcript: Transcript) -> int:
    """Return the index of the batch in which the risky tool is called."""
    calls = (
        index
        for index, batch in enumerate(transcript.batches)
        for event in batch.events
        if isinstance(event.body, ToolCallState) and event.body.name == RISKY_TOOL
    )
    return next(calls)


def _work_and_hang(address: str, outbox: Path) -> None:
    transcript = load(TRANSCRIPT)
    index = risky(transcript)
    with Client(address) as client:
        session = client.create(SESSION_ID, labels=transcript.labels)
        session.open_writer(owner="worker-1")
        Stepper(session, Header()).work(transcript.batches[:index])
        # The model's answer, and the first of its calls: the others are not handed out yet.
        answer, dispatched = transcript.batches[index].events[:2]
        assert isinstance(dispatched.body, ToolCallState)
        session.append(answer.body, dispatched.body)
        Mail(outbox).send(dispatched.body.idempotency_key or "")
        print("sent", flush=True)
        sys.stdin.read()  # for as long as there is somebody to wait for


if __name__ == "__main__":
    _work_and_hang(sys.argv[1], Path(sys.argv[2]))
