"""The check: can a request be derived from the log? By digests if they suffice, else by content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from foldlog import observability
from foldlog.application.fold import Fold, Live
from foldlog.application.messages import Digests
from foldlog.application.readers import EVENT_BYTES, HEAVY_BYTES, LIGHT_BYTES, Workers
from foldlog.application.reading import Folded, Reading
from foldlog.codec import header_from_proto, message_from_proto
from foldlog.core.digest import ZERO
from foldlog.core.errors import InvalidFieldError, RequestNotDerivableError
from foldlog.core.invariant import (
    CheckOptions,
    Violation,
    check,
)
from foldlog.core.message import Message, Role
from foldlog.v1.check_pb2 import CheckMode
from foldlog.v1.event_pb2 import RequestHeader
from foldlog.v1.message_pb2 import Message as MessageProto
from foldlog.v1.service_pb2 import CheckRequestRequest

MODES = {
    "off": CheckMode.CHECK_MODE_OFF,
    "warn": CheckMode.CHECK_MODE_WARN,
    "strict": CheckMode.CHECK_MODE_STRICT,
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a check found. `digest` is (count, digest, leading_system) over the whole fold."""

    checked: bool
    violation: Violation | None = None
    need_full_list: bool = False
    next_seq: int = 0
    digest: tuple[int, bytes, bool] = (0, ZERO, False)


def default_mode(setting: str) -> CheckMode.ValueType:
    """Return the mode of a setting; a wrong value is reported once and means warn."""
    mode = MODES.get(setting.strip().lower())
    if mode is None:
        observability.log("check.mode_unknown", level="warning", value=setting, used="warn")
        return CheckMode.CHECK_MODE_WARN
    return mode


class Checking:
    """Judges requests against folds."""

    def __init__(self, reading: Reading, workers: Workers, digests: Digests, mode: str) -> None:
        self._reading = reading
        self._digests = digests
        self._workers = workers
        self._default = default_mode(mode)

    async def check(self, request: CheckRequestRequest) -> Judgement:
        """Judge a request. Raises RequestNotDerivableError for a violation in strict mode."""
        mode = request.mode or self._default
        if mode not in CheckMode.values():
            raise InvalidFieldError.of("mode", f"{mode} is no mode")
        if mode == CheckMode.CHECK_MODE_OFF:
            return Judgement(checked=False)
        reading = self._reading.anew() if request.options.independent else self._reading
        folded = await reading.fold(
            request.session_id,
            request.at_seq if request.HasField("at_seq") else None,
            request.min_next_seq if request.HasField("min_next_seq") else None,
            request.options.independent,
        )
        case = Case(reading, self._workers, self._digests, request, folded)
        judgement = await case.judge()
        if judgement.violation is not None:
            self._report(request, judgement.violation, mode)
        return judgement

    def _report(
        self, request: CheckRequestRequest, violation: Violation, mode: CheckMode.ValueType
    ) -> None:
        kind = violation.kind.name.lower()
        name = "strict" if mode == CheckMode.CHECK_MODE_STRICT else "warn"
        facts: dict[str, Any] = {
            "kind": kind,
            "index": violation.index,
            "request_length": violation.request_length,
            "log_length": violation.log_length,
            "tool_call_id": violation.tool_call_id or "",
            "session": request.session_id,
            "agent_name": request.agent_name,
            "mode": name,
        }
        observability.log(
            "session.invariant.violation",
            "warning",
            extra_previews=str([sketch.preview for sketch in violation.extra]),
            missing_previews=str([sketch.preview for sketch in violation.missing]),
            **facts,
        )
        observability.metrics.violation(kind, name)
        observability.tracing.violation_event(**facts)
        if name == "strict":
            raise RequestNotDerivableError(violation=violation)


class Case:
    """One request before one fold."""

    def __init__(
        self,
        reading: Reading,
        workers: Workers,
        digests: Digests,
        request: CheckRequestRequest,
        folded: Folded,
    ) -> None:
        self._reading = reading
        self._digests = digests
        self._workers = workers
        self._request = request
        self._weight = weight_of(request)
        self._session_id = folded.session_id
        self._next_seq = folded.next_seq
        # The fold of a session goes on while we wait: what is needed of it is taken before.
        self._surface = folded.fold.surface
        self._taken: Sequence[Live] | None = None
        self._count = len(self._surface)
        self._digest = folded.fold.digest()
        self._prefix_digest = self._digest_of(folded.fold)
        self._orphan = folded.fold.first_orphan()
        self._header_ref = folded.fold.header
        self._options = options_of(request)

    def _digest_of(self, fold: Fold) -> bytes | None:
        """Return the fold's digest over as many messages as the request's prefix covers."""
        count = self._request.prefix.count
        if not 0 <= count <= self._digest[0]:
            return None
        return fold.digest(count)[1]

    @property
    def _entries(self) -> Sequence[Live]:
        """Every entry, which costs a look at each: taken before anything is waited for."""
        if self._taken is None:
            self._taken = tuple(self._surface.entries)
        return self._taken

    def _entries_from(self, index: int) -> Sequence[Live]:
        """Return the entries from an index on. What is light is not waited for."""
        if self._weight > LIGHT_BYTES:
            return self._entries[index:]
        return self._surface.entries[index:]

    async def judge(self) -> Judgement:
        """Judge the request."""
        prefix = self._request.prefix
        if prefix.count or prefix.leading_system:
            return await self._judge_extension()
        return self._judgement(await self._judge_list())

    def _judgement(self, violation: Violation | None) -> Judgement:
        return Judgement(True, violation, False, self._next_seq, self._digest)

    @property
    def _needs_content(self) -> bool:
        o = self._options
        return o.strict_system or o.compare_reasoning or o.byte_exact or o.report_unanswered_calls

    async def _judge_list(self) -> Violation | None:
        skip = self._overlay
        if self._needs_content or not await self._equals(skip, self._entries):
            contents = await self._reading.contents(self._entries)
            return await self._judge_contents(await self._messages(), contents)
        if self._orphan is None and not (skip and self._request.HasField("header")):
            return await self._judge_header()
        messages = await self._messages()
        return await self._judge_contents(messages, messages[skip:], self._weight)

    @property
    def _overlay(self) -> int:
        messages = self._request.messages
        has_system = bool(messages) and messages[0].role == int(Role.SYSTEM)
        fold_leads = bool(self._entries) and self._entries[0].role == Role.SYSTEM
        return int(has_system and not fold_leads)

    async def _equals(self, skip: int, entries: Sequence[Live]) -> bool:
        """Return whether the request's messages after a few have the entries' digests."""
        messages = self._request.messages
        if len(messages) - skip != len(entries):
            return False
        return await self._workers.run(self._weight, self._all_equal, skip, entries)

    def _all_equal(self, skip: int, entries: Sequence[Live]) -> bool:
        digests = map(self._digests.of, islice(self._request.messages, skip, None))
        return all(digest == entry.digest for digest, entry in zip(digests, entries, strict=True))

    async def _messages(self) -> list[Message]:
        return await self._workers.run(self._weight, _decoded, self._request.messages)

    async def _judge_contents(
        self,
        messages: Sequence[Message],
        contents: Sequence[Message],
        weight: int = HEAVY_BYTES,
    ) -> Violation | None:
        logged = await self._logged_header()
        weight += 0 if logged is None else logged.ByteSize()
        return await self._workers.run(weight, self._judged, messages, contents, logged)

    def _judged(
        self,
        messages: Sequence[Message],
        contents: Sequence[Message],
        logged: RequestHeader | None,
    ) -> Violation | None:
        sent = self._request.header
        return check(
            messages,
            contents,
            logged_header=None if logged is None else header_from_proto(logged),
            header=header_from_proto(sent) if self._request.HasField("header") else None,
            options=self._options,
            fold_seqs=[entry.seq for entry in self._entries] if contents else [],
        )

    async def _logged_header(self) -> RequestHeader | None:
        if not (self._request.HasField("header") or self._options.strict_system):
            return None
        if self._header_ref is None:
            return None
        return await self._reading.header_at(self._header_ref)

    async def _judge_extension(self) -> Judgement:
        prefix = self._request.prefix
        if len(prefix.digest) != 32:
            raise InvalidFieldError.of("prefix.digest", "a digest of 32 bytes is required")
        if prefix.count < 0:
            raise InvalidFieldError.of("prefix.count", f"{prefix.count} is negative")
        if self._needs_content or not self._prefix_holds():
            return Judgement(False, None, True, self._next_seq, self._digest)
        rest = self._entries_from(prefix.count + self._leading)
        if self._orphan is None and await self._equals(0, rest):
            return self._judgement(await self._judge_header())
        entries = self._entries
        known = await self._reading.contents(entries)
        covered = known[: prefix.count + self._leading]
        if prefix.leading_system and not self._leading:
            covered = [Message(Role.SYSTEM), *covered]
        messages = [*covered, *await self._messages()]
        return self._judgement(await self._judge_contents(messages, known))

    async def _judge_header(self) -> Violation | None:
        """Judge the header alone: the messages are those of the log."""
        if not self._request.HasField("header"):
            return None
        violation = await self._judge_contents([], [], self._weight)
        count = self._count
        return violation and replace(violation, index=count, request_length=count, log_length=count)

    @property
    def _leading(self) -> int:
        return int(self._digest[2])

    def _prefix_holds(self) -> bool:
        prefix = self._request.prefix
        if self._leading and not prefix.leading_system:
            return False
        return self._prefix_digest == prefix.digest


def weight_of(request: CheckRequestRequest) -> int:
    """Return what comparing a request weighs. Many messages are not measured: they are heavy."""
    count = len(request.messages) * EVENT_BYTES
    return count if count > LIGHT_BYTES else count + request.ByteSize()


def _decoded(messages: Sequence[MessageProto]) -> list[Message]:
    return [message_from_proto(each) for each in messages]


def options_of(request: CheckRequestRequest) -> CheckOptions:
    """Return a request's options."""
    options = request.options
    return CheckOptions(
        strict_system=options.strict_system,
        compare_reasoning=options.compare_reasoning,
        report_unanswered_calls=options.report_unanswered_calls,
        byte_exact=options.byte_exact,
    )
