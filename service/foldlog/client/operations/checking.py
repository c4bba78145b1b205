"""The check: whole lists, or only what is new since the last list that was equal to the log's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, Protocol, TypeAlias

from foldlog.client.batches import require_fits
from foldlog.client.encoding import checked_header_to_proto, checked_message_to_proto, request
from foldlog.client.methods import CHECK_REQUEST
from foldlog.client.new_events import CarriesMessage
from foldlog.client.retries import Attempts, unary
from foldlog.client.state import CheckedPrefix, SessionState
from foldlog.client.steps import Operation
from foldlog.client.values import CheckResult
from foldlog.codec import violation_from_proto
from foldlog.core.errors import InvalidFieldError
from foldlog.core.header import Header
from foldlog.core.message import Message, Role
from foldlog.v1 import check_pb2
from foldlog.v1 import service_pb2 as pb


class CheckMode(IntEnum):
    """What a check does with what it finds. The numbers are those of the wire."""

    UNSPECIFIED = 0
    OFF = 1
    WARN = 2
    STRICT = 3


class ProviderRequest(Protocol):
    """A whole request, such as a converter returns it."""

    @property
    def messages(self) -> Iterable[Message | CarriesMessage]: ...

    @property
    def header(self) -> Header | None: ...


Checkable: TypeAlias = Iterable[Message | CarriesMessage] | ProviderRequest


def check(
    session: SessionState,
    messages: Checkable,
    header: Header | None = None,
    *,
    mode: CheckMode | str | None = None,
    at_seq: int | None = None,
    strict_system: bool = False,
    compare_reasoning: bool = False,
    report_unanswered_calls: bool = False,
    byte_exact: bool = False,
    independent: bool = False,
    agent_name: str = "",
    min_next_seq: int | None = None,
    timeout_s: float | None = None,
) -> Operation[CheckResult]:
    """Ask whether a provider request can be derived from the log, now or right after at_seq.

    Takes a list of messages, or an object that has `messages` and `header`; a header that is given
    comes first, and one that is empty says nothing. `mode` None is the service's default; "strict"
    raises RequestNotDerivableError instead of returning a violation. Messages that this object
    knows to be equal to the log's, from the last check that found nothing or from `messages()`, are
    sent as a digest. An option needs the whole list, which is then sent. `min_next_seq` is as in
    `messages()`; while this object holds the writer epoch it is what the object knows itself, since
    nobody else writes then.
    """
    given, own_header = _parts(messages)
    options = check_pb2.CheckOptions(
        strict_system=strict_system,
        compare_reasoning=compare_reasoning,
        report_unanswered_calls=report_unanswered_calls,
        byte_exact=byte_exact,
        independent=independent,
    )
    if min_next_seq is None and at_seq is None and session.writer_epoch is not None:
        min_next_seq = session.next_seq
    frame = request(
        pb.CheckRequestRequest,
        session_id=session.session_id,
        header=checked_header_to_proto(header or own_header),
        mode=_mode(mode),
        at_seq=at_seq,
        min_next_seq=min_next_seq,
        options=options,
        agent_name=agent_name,
    )
    answer = yield from _check(session, session.client.attempts(timeout_s), frame, given)
    violation = violation_from_proto(answer.violation) if answer.HasField("violation") else None
    result = CheckResult(answer.checked, violation, answer.next_seq)
    if at_seq is None:
        session.saw(answer.next_seq)
        if result.ok:
            remember(session, given, answer.digest)
    return result


def _parts(given: Checkable) -> tuple[list[Message], Header | None]:
    inner: Any = getattr(given, "messages", given)
    messages = [_message(each, f"messages[{i}]") for i, each in enumerate(inner)]
    header = getattr(given, "header", None)
    return messages, None if header == Header() else header


def _message(given: Message | CarriesMessage, path: str) -> Message:
    message = given if isinstance(given, Message) else getattr(given, "message", None)
    if not isinstance(message, Message):
        raise InvalidFieldError.of(path, f"{type(given).__name__} is not a message")
    return message


def _mode(mode: CheckMode | str | None) -> CheckMode:
    if mode is None:
        return CheckMode.UNSPECIFIED
    if isinstance(mode, CheckMode):
        return mode
    if mode.upper() in CheckMode.__members__:
        return CheckMode[mode.upper()]
    raise InvalidFieldError.of("mode", f'is "off", "warn" or "strict", not {mode!r}')


def _check(
    session: SessionState,
    attempts: Attempts,
    frame: pb.CheckRequestRequest,
    given: list[Message],
) -> Operation[pb.CheckRequestResponse]:
    needs_content = frame.options.ByteSize() > 0
    known = None if needs_content else known_prefix(session, given)
    if known is not None:
        asked = _after(known, frame, given)
        require_fits("messages", asked.ByteSize(), session.client.limits.request_bytes)
        answer = yield from unary(attempts, CHECK_REQUEST, asked)
        if not answer.need_full_list:
            return answer
        session.checked = None
    frame.messages.extend(
        checked_message_to_proto(m, f"messages[{i}]") for i, m in enumerate(given)
    )
    require_fits("messages", frame.ByteSize(), session.client.limits.request_bytes)
    return (yield from unary(attempts, CHECK_REQUEST, frame))


def _after(
    known: CheckedPrefix, frame: pb.CheckRequestRequest, given: Sequence[Message]
) -> pb.CheckRequestRequest:
    lead = leads_with_system(given)
    start = len(known.messages) + lead
    asked = pb.CheckRequestRequest()
    asked.CopyFrom(frame)
    asked.prefix.count = len(known.messages)
    asked.prefix.digest = known.digest
    asked.prefix.leading_system = lead
    asked.messages.extend(
        checked_message_to_proto(m, f"messages[{start + i}]") for i, m in enumerate(given[start:])
    )
    return asked


def leads_with_system(messages: Sequence[Message]) -> bool:
    """Return whether the first message is a system message, which digests leave out."""
    return bool(messages) and messages[0].role == Role.SYSTEM


def known_prefix(session: SessionState, given: list[Message]) -> CheckedPrefix | None:
    """Return what is known to equal the log, if the list begins with it.

    Compares by identity first, so a list that grows costs next to nothing.
    """
    known = session.checked
    lead = leads_with_system(given)
    if known is None or given[lead : lead + len(known.messages)] != known.messages:
        return None
    return known


def remember(
    session: SessionState, messages: list[Message], digest: check_pb2.PrefixDigest
) -> None:
    """Keep messages that are equal to the log's, with the log's digest over them.

    The digest is the log's own, so it holds even where the messages differ from it in JSON form.
    """
    rest = messages[leads_with_system(messages) :]
    if rest and digest.digest and digest.count == len(rest):
        session.checked = CheckedPrefix(rest, digest.digest)
