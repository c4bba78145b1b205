"""The check: can a request be derived from the log? By digests if they suffice, else by content."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from foldlog import observability
from foldlog.application.fold import Fold, Live
from foldlog.application.reading import Folded, Reading
from foldlog.codec import header_from_proto, message_from_proto
from foldlog.core.digest import ZERO, message_digest
from foldlog.core.errors import FoldlogError, InvalidFieldError, RequestNotDerivableError
from foldlog.core.header import Header
from foldlog.core.invariant import (
    CheckOptions,
    Violation,
    check_steps,
)
from foldlog.core.message import Message, Role
from foldlog.v1.check_pb2 import CheckMode
from foldlog.v1.service_pb2 import CheckRequestRequest

TURN_EVERY = 250
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

    def __init__(self, reading: Reading, mode: str) -> None:
        self._reading = reading
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
        judgement = await Case(reading, request, folded).judge()
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

    def __init__(self, reading: Reading, request: CheckRequestRequest, folded: Folded) -> None:
        self._reading = reading
        self._request = request
        self._session_id = folded.session_id
        self._next_seq = folded.next_seq
        # The fold of a session goes on while we wait: what is needed of it is taken now.
        self._entries: Sequence[Live] = tuple(folded.fold.surface)
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
        messages = await self._decoded()
        leading = self._overlay(messages)
        if not self._needs_content and await self._equal_by_digest(messages[leading:]):
            return await self._judge_contents(messages, messages[leading:])
        contents = await self._reading.contents(self._entries)
        return await self._judge_contents(messages, contents)

    def _overlay(self, messages: Sequence[Message]) -> int:
        has_system = bool(messages) and messages[0].role == Role.SYSTEM
        fold_leads = bool(self._entries) and self._entries[0].role == Role.SYSTEM
        return int(has_system and not fold_leads)

    async def _decoded(self) -> list[Message]:
        messages = []
        for index, each in enumerate(self._request.messages):
            if index % TURN_EVERY == TURN_EVERY - 1:
                await asyncio.sleep(0)
            messages.append(message_from_proto(each))
        return messages

    async def _equal_by_digest(self, messages: Sequence[Message]) -> bool:
        if len(messages) != len(self._entries):
            return False
        for index, (message, entry) in enumerate(zip(messages, self._entries, strict=True)):
            if index % TURN_EVERY == TURN_EVERY - 1:
                await asyncio.sleep(0)
            if not _equal(message, entry):
                return False
        return True

    async def _judge_contents(
        self, messages: Sequence[Message], contents: Sequence[Message]
    ) -> Violation | None:
        sent = self._request.header
        steps = check_steps(
            messages,
            contents,
            logged_header=await self._logged_header(),
            header=header_from_proto(sent) if self._request.HasField("header") else None,
            options=self._options,
            fold_seqs=[entry.seq for entry in self._entries],
        )
        while True:
            try:
                next(steps)
            except StopIteration as end:
                found: Violation | None = end.value
                return found
            await asyncio.sleep(0)

    async def _logged_header(self) -> Header | None:
        if not (self._request.HasField("header") or self._options.strict_system):
            return None
        if self._header_ref is None:
            return None
        return header_from_proto(await self._reading.header_at(self._header_ref))

    async def _judge_extension(self) -> Judgement:
        prefix = self._request.prefix
        if len(prefix.digest) != 32:
            raise InvalidFieldError.of("prefix.digest", "a digest of 32 bytes is required")
        if prefix.count < 0:
            raise InvalidFieldError.of("prefix.count", f"{prefix.count} is negative")
        if self._needs_content or not self._prefix_holds():
            return Judgement(False, None, True, self._next_seq, self._digest)
        new = await self._decoded()
        rest = self._entries[prefix.count + self._leading :]
        is_equal = len(new) == len(rest) and all(map(_equal, new, rest))
        if is_equal and self._orphan is None:
            return self._judgement(await self._judge_header())
        known = await self._reading.contents(self._entries)
        covered = known[: prefix.count + self._leading]
        if prefix.leading_system and not self._leading:
            covered = [Message(Role.SYSTEM), *covered]
        return self._judgement(await self._judge_contents([*covered, *new], known))

    async def _judge_header(self) -> Violation | None:
        """Judge the header alone: the messages are those of the log."""
        if not self._request.HasField("header"):
            return None
        violation = await self._judge_contents([], [])
        count = len(self._entries)
        return violation and replace(violation, index=count, request_length=count, log_length=count)

    @property
    def _leading(self) -> int:
        return int(self._digest[2])

    def _prefix_holds(self) -> bool:
        prefix = self._request.prefix
        if self._leading and not prefix.leading_system:
            return False
        return self._prefix_digest == prefix.digest


def _equal(message: Message, entry: Live) -> bool:
    if message.role == Role.SYSTEM or entry.role == Role.SYSTEM:
        return message.role == entry.role
    try:
        return message_digest(message) == entry.digest
    except FoldlogError:
        return False


def options_of(request: CheckRequestRequest) -> CheckOptions:
    """Return a request's options."""
    options = request.options
    return CheckOptions(
        strict_system=options.strict_system,
        compare_reasoning=options.compare_reasoning,
        report_unanswered_calls=options.report_unanswered_calls,
        byte_exact=options.byte_exact,
    )
