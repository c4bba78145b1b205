"""Records of sent requests: enough to tell later whether each can be made again."""

from __future__ import annotations

from dataclasses import dataclass

from foldlog.application import decisions
from foldlog.application.decisions import Guard
from foldlog.application.domain import Answered, RequestKey, RowSpec, Session, build
from foldlog.application.fold import Passed, RowRef
from foldlog.application.incoming import judge_sent_request, require_size
from foldlog.application.lane import Decided, Lane, Write
from foldlog.application.reading import Reading
from foldlog.application.requests import Requests
from foldlog.application.writing import Writing
from foldlog.core.errors import InvalidFieldError, SeqBeyondHeadError, TooLargeError
from foldlog.core.event import EventType
from foldlog.settings import Limits
from foldlog.v1.event_pb2 import EventBody, SentRequest


@dataclass(frozen=True, slots=True)
class Sent:
    """Where the record of a sent request stands."""

    seq: int
    next_seq: int


class Records:
    """Records what was sent."""

    def __init__(
        self, reading: Reading, writing: Writing, requests: Requests, limits: Limits
    ) -> None:
        self._reading = reading
        self._writing = writing
        self._requests = requests
        self._limits = limits

    async def record(
        self, session_id: str, request_id: str, sent: SentRequest, writer_epoch: int | None
    ) -> Sent:
        """Append the record of a request that was sent."""
        try:
            judge_sent_request(sent, self._limits)
        except (InvalidFieldError, TooLargeError) as error:
            raise error.within("sent") from None
        body = EventBody(request=sent).SerializeToString(deterministic=True)
        require_size("sent", len(body), self._limits.event_bytes)
        key = self._writing.request(request_id, b"record_request", body)
        if sent.HasField("step_seq"):
            head = await self._reading.head(session_id)
            if head.turns.open_step_seq != sent.step_seq:
                await self._requests.step_row(head, sent.step_seq, "sent.step_seq")

        def decide(head: Session, _: object) -> Decided:
            decisions.require_session(head, session_id)
            decisions.require_guard(head, Guard(None, writer_epoch))
            if sent.built_at_next_seq > head.next_seq:
                raise SeqBeyondHeadError(seq=sent.built_at_next_seq - 1, next_seq=head.next_seq)
            return self._recorded(head, key, body)

        async def replay(lane: Lane, answered: Answered) -> Sent:
            (row,) = await self._writing.answered_rows(lane, answered)
            return Sent(row.envelope.seq, row.envelope.seq + 1)

        answer: Sent = await self._writing.write(session_id, Write(key, decide, replay))
        return answer

    def _recorded(self, head: Session, key: RequestKey, body: bytes) -> Decided:
        spec = RowSpec(Session.Event, body, EventType.REQUEST)
        (event,) = build(head, [spec], self._writing.call(key).now_ns, key)
        seq, row = event.envelope.seq, RowRef(head.id, event.originator_version)
        return Decided(Sent(seq, seq + 1), [event], [Passed(seq, EventType.REQUEST, row)])
