"""Operations that add events at the head: append and seed, in as many batches as it takes."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final

from google.protobuf.message import Message as ProtoMessage

from foldlog.client.batches import batches_of, require_fits
from foldlog.client.decoding import appended_from_proto
from foldlog.client.encoding import checked_message_to_proto, event_to_proto, request
from foldlog.client.methods import APPEND_EVENTS, SEED_SESSION, Answer, Method
from foldlog.client.new_events import Appendable, NewEvent, new_event
from foldlog.client.retries import unary
from foldlog.client.state import SessionState, new_request_id
from foldlog.client.steps import Operation
from foldlog.client.values import Appended
from foldlog.codec import time_to_proto
from foldlog.core.errors import FoldlogError, InvalidFieldError
from foldlog.core.message import Message
from foldlog.v1 import message_pb2
from foldlog.v1 import service_pb2 as pb

logger: Final = logging.getLogger("foldlog.client")


class BatchChain:
    """The batches of one call: one timeout, request ids derived from one, each after the other."""

    def __init__(
        self,
        session: SessionState,
        count: int,
        expected_next_seq: int | None,
        request_id: str | None,
        timeout_s: float | None,
    ) -> None:
        self._session = session
        self._count = count
        self._sent = 0
        self._expected_next_seq = expected_next_seq
        self._request_id = new_request_id(request_id)
        self._attempts = session.client.attempts(timeout_s)

    def fields(self) -> dict[str, Any]:
        """Return what the next batch's request says beside the batch."""
        alone = self._count == 1
        return {
            "session_id": self._session.session_id,
            "request_id": self._request_id if alone else f"{self._request_id}/{self._sent}",
            "expected_next_seq": self._expected_next_seq,
            "writer_epoch": self._session.writer_epoch,
        }

    def send(self, method: Method[Answer], asked: ProtoMessage) -> Operation[Answer]:
        """Send the next batch's request; the one after it is to follow without gap."""
        try:
            answer = yield from unary(self._attempts, method, asked)
        except FoldlogError as error:
            if self._count > 1:
                error.add_note(f"{self._sent} of {self._count} batches were written before")
            raise
        self._sent += 1
        self._expected_next_seq = answer.next_seq  # type: ignore[attr-defined]
        return answer


def append(
    session: SessionState,
    *events: Appendable,
    expected_next_seq: int | None = None,
    require_balanced: bool = False,
    validate_only: bool = False,
    request_id: str | None = None,
    timeout_s: float | None = None,
) -> Operation[Appended]:
    """Append events: all of them or none, each judged after the ones before it.

    What is over the limits of one batch (1,000 events, 3.5 MiB) is sent as several, each expecting
    the seq after the one before, so that nobody comes between. Each is atomic, the whole is not:
    if one is refused, those before it stay, and the error has a note that says how many. The same
    call under the same request_id finishes what it began. `validate_only` needs a single batch.
    """
    limits = session.client.limits
    encoded = [event_to_proto(event, f"events[{i}]") for i, event in enumerate(events)]
    batches = batches_of("events", encoded, limits)
    if validate_only and len(batches) > 1:
        require_fits("events", len(encoded), limits.batch_events)
        require_fits("events", sum(e.ByteSize() for e in encoded), limits.batch_bytes)
    chain = BatchChain(session, len(batches), expected_next_seq, request_id, timeout_s)
    answers: list[Appended] = []
    offset = 0
    for batch in batches:
        asked = request(
            pb.AppendEventsRequest,
            events=batch,
            validate_only=validate_only,
            require_balanced=require_balanced,
            **chain.fields(),
        )
        answer = yield from chain.send(APPEND_EVENTS, asked)
        answers.append(appended_from_proto(answer, offset))
        offset += len(batch)
        if not validate_only:
            session.saw(answer.next_seq)
    return _joined(answers)


def try_append(
    session: SessionState,
    *events: Appendable,
    expected_next_seq: int | None = None,
    require_balanced: bool = False,
    request_id: str | None = None,
    timeout_s: float | None = None,
) -> Operation[Appended | None]:
    """Append as `append` does; log and count a failure and return None instead of raising it.

    For bookkeeping inside a loop that is to go on. The counts are `failed_appends`, here and on
    the client.
    """
    try:
        return (
            yield from append(
                session,
                *events,
                expected_next_seq=expected_next_seq,
                require_balanced=require_balanced,
                request_id=request_id,
                timeout_s=timeout_s,
            )
        )
    except FoldlogError as error:
        session.failed_appends += 1
        session.client.failed_appends += 1
        facts = {"session_id": session.session_id, "error": type(error).__name__}
        logger.warning("append_failed", extra=facts)
        return None


def seed(
    session: SessionState,
    messages: Iterable[Message | NewEvent],
    *,
    expected_next_seq: int | None = None,
    request_id: str | None = None,
    timeout_s: float | None = None,
) -> Operation[Appended]:
    """Append one surface event per message of a flat list, in order.

    `at(message, time)` gives a message its own time. Long lists are split as `append` does it.
    """
    encoded = [_seeded(each, f"messages[{i}]") for i, each in enumerate(messages)]
    batches = batches_of("messages", encoded, session.client.limits)
    chain = BatchChain(session, len(batches), expected_next_seq, request_id, timeout_s)
    answers: list[Appended] = []
    for batch in batches:
        asked = request(pb.SeedSessionRequest, messages=batch, **chain.fields())
        answer = yield from chain.send(SEED_SESSION, asked)
        answers.append(Appended(answer.first_seq, answer.next_seq))
        session.saw(answer.next_seq)
    return _joined(answers)


def _seeded(given: Message | NewEvent, path: str) -> message_pb2.Message:
    event = new_event(given)
    if not isinstance(event.body, Message):
        raise InvalidFieldError.of(path, f"{type(event.body).__name__} is not a message")
    if event != NewEvent(event.body, time_ns=event.time_ns):
        raise InvalidFieldError.of(path, "a seed carries messages and times only: append it")
    message = checked_message_to_proto(event.body, path)
    if event.time_ns is not None:
        message.create_time.CopyFrom(time_to_proto(event.time_ns, f"{path}.create_time"))
    return message


def _joined(answers: list[Appended]) -> Appended:
    replaces = tuple(replace for answer in answers for replace in answer.replaces)
    return Appended(answers[0].first_seq, answers[-1].next_seq, replaces)
