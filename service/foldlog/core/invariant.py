"""The check: can a request be derived from the log, and if not, how does it depart from it?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from foldlog.core.canonical import canonical
from foldlog.core.header import Header, differing_fields
from foldlog.core.message import Message, OpaquePart, Part, ReasoningPart, Role, UnknownPart
from foldlog.core.pairing import CallsSoFar, open_calls

MAX_SKETCHES = 5
PREVIEW_LENGTH = 120

_SYSTEM = int(Role.SYSTEM)


class ViolationKind(IntEnum):
    """The kinds of departure, in the order in which they are judged. The numbers are the wire's."""

    UNSPECIFIED = 0
    MISSING_MESSAGE = 1
    EXTRA_MESSAGE = 2
    ORDER = 3
    ORPHANED_TOOL_RESULT = 4
    HEADER_MISMATCH = 5
    UNANSWERED_TOOL_CALL = 6
    BYTES_DIFFER = 7


@dataclass(frozen=True, slots=True)
class Sketch:
    """Enough of a message to recognise it; of a system message its role alone."""

    role: int
    preview: str | None = None
    tool_calls: int = 0
    tool_call_id: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Violation:
    """How a request departs from the log: a value, not a failure.

    Index and lengths are those after the overlay slot. The index is 0 where the header alone depar
    """

    kind: ViolationKind
    index: int
    request_length: int
    log_length: int
    extra: tuple[Sketch, ...] = ()
    missing: tuple[Sketch, ...] = ()
    tool_call_id: str | None = None
    header_fields: tuple[str, ...] = ()
    log_seq: int | None = None


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """What a check does beyond its rules."""

    strict_system: bool = False
    compare_reasoning: bool = False
    report_unanswered_calls: bool = False
    byte_exact: bool = False


NO_OPTIONS = CheckOptions()


def messages_equal(a: Message, b: Message, options: CheckOptions = NO_OPTIONS) -> bool:
    """Return whether a request's message is the log's. Two system messages are, unless strict."""
    if a == b:
        return True
    if a.role != b.role:
        return False
    if a.role == _SYSTEM and not options.strict_system:
        return True
    return (
        a.tool_call_id == b.tool_call_id
        and a.name == b.name
        and a.tool_calls == b.tool_calls
        and (a.reasoning == b.reasoning or not options.compare_reasoning)
        and (a.content == b.content or _contents_equal(a.content, b.content, options))
    )


def equality_key(message: Message, options: CheckOptions = NO_OPTIONS) -> Hashable:
    """Return what messages_equal compares, as one value: equal keys, equal messages."""
    if message.role == _SYSTEM and not options.strict_system:
        return (_SYSTEM,)
    return (
        message.role,
        _content_key(message.content, options),
        message.tool_calls,
        message.tool_call_id,
        message.name,
        message.reasoning if options.compare_reasoning else None,
    )


Content = str | tuple[Part, ...] | None


def _contents_equal(a: Content, b: Content, options: CheckOptions) -> bool:
    if not isinstance(a, tuple) or not isinstance(b, tuple) or len(a) != len(b):
        return False
    return all(
        x == y or _part_key(x, options) == _part_key(y, options) for x, y in zip(a, b, strict=True)
    )


def _content_key(content: Content, options: CheckOptions) -> Content:
    if not isinstance(content, tuple):
        return content
    return tuple([_part_key(part, options) for part in content])


def _part_key(part: Part, options: CheckOptions) -> Part:
    match part:
        case ReasoningPart(text=None, json=None):
            return UnknownPart()
        case OpaquePart(json=str(json)) | ReasoningPart(json=str(json)) if not options.byte_exact:
            return replace(part, json=canonical(json))
    return part


def sketch(message: Message) -> Sketch:
    """Return enough of a message to recognise it."""
    if message.role == _SYSTEM:
        return Sketch(_SYSTEM)
    content = message.content
    if isinstance(content, str):
        preview: str | None = content[:PREVIEW_LENGTH]
    else:
        preview = None if content is None else f"[{len(content)} content parts]"
    calls = len(message.tool_calls)
    return Sketch(message.role, preview, calls, _cut(message.tool_call_id), _cut(message.name))


def _cut(text: str | None) -> str | None:
    return text if text is None else text[:PREVIEW_LENGTH]


def check(
    request: Sequence[Message],
    fold: Sequence[Message],
    *,
    logged_header: Header | None = None,
    header: Header | None = None,
    options: CheckOptions = NO_OPTIONS,
    fold_seqs: Sequence[int] | None = None,
) -> Violation | None:
    """Return how a request departs from the log's fold and header, or None. O(n).

    `header` is the request's, None if it sent none; `fold_seqs` has the seq of each folded message.
    Odd input is a violation, never an error.
    """
    judged = _Check(request, fold, options, fold_seqs)
    return (
        judged.difference()
        or judged.orphan()
        or judged.header_mismatch(logged_header, header)
        or judged.unanswered_call()
        or judged.other_bytes(logged_header, header)
    )


class _Check:
    """One request beside one fold, the overlay slot left out."""

    def __init__(
        self,
        request: Sequence[Message],
        fold: Sequence[Message],
        options: CheckOptions,
        fold_seqs: Sequence[int] | None,
    ) -> None:
        has_overlay = bool(request) and request[0].role == _SYSTEM
        if has_overlay and fold and fold[0].role == _SYSTEM:
            has_overlay = False
        self._overlay = request[0] if has_overlay else None
        self._request = request[1:] if has_overlay else request
        self._fold = fold
        self._seqs = fold_seqs
        self._options = options
        self._by_value = replace(options, byte_exact=False)

    def difference(self) -> Violation | None:
        """Judge the lists against each other."""
        index = self._first_difference(self._by_value)
        if index is None:
            return None
        # What stands before the index is equal in pairs and takes nothing from either multiset.
        numbers: dict[Hashable, int] = {}
        sent = self._numbered(self._request[index:], numbers)
        logged = self._numbered(self._fold[index:], numbers)
        missing = _surplus(self._fold[index:], logged, sent)
        extra = _surplus(self._request[index:], sent, logged)
        kind = ViolationKind.ORDER
        if missing:
            kind = ViolationKind.MISSING_MESSAGE
        elif extra:
            kind = ViolationKind.EXTRA_MESSAGE
        return replace(self._violation(kind, index), extra=extra, missing=missing)

    def _first_difference(self, options: CheckOptions) -> int | None:
        request, fold = self._request, self._fold
        for index, (sent, logged) in enumerate(zip(request, fold, strict=False)):
            if sent is not logged and not messages_equal(sent, logged, options):
                return index
        return None if len(request) == len(fold) else min(len(request), len(fold))

    def _numbered(self, messages: Sequence[Message], numbers: dict[Hashable, int]) -> list[int]:
        """Return a number for each message: equal messages, equal numbers."""
        keys = (equality_key(message, self._by_value) for message in messages)
        return [numbers.setdefault(key, len(numbers)) for key in keys]

    def orphan(self) -> Violation | None:
        """Judge the first result of a call that does not precede it."""
        so_far = CallsSoFar()
        for index, message in enumerate(self._request):
            if so_far.is_orphaned_by_now(message):
                kind = ViolationKind.ORPHANED_TOOL_RESULT
                return replace(self._violation(kind, index), tool_call_id=message.tool_call_id)
        return None

    def header_mismatch(self, logged: Header | None, sent: Header | None) -> Violation | None:
        """Judge the header, if one was sent, and under strict_system the overlay."""
        fields = differing_fields(logged, sent) if sent is not None else ()
        if not self._is_overlay_logged(logged) and "system_prompt" not in fields:
            fields += ("system_prompt",)
        return self._of_header(ViolationKind.HEADER_MISMATCH, fields) if fields else None

    def _is_overlay_logged(self, logged: Header | None) -> bool:
        if self._overlay is None or not self._options.strict_system:
            return True
        return (self._overlay.content or "") == (logged or Header()).system_prompt

    def unanswered_call(self) -> Violation | None:
        """Judge the first call without a result, if asked to."""
        if not self._options.report_unanswered_calls:
            return None
        for index, call_id in open_calls(self._request):
            kind = ViolationKind.UNANSWERED_TOOL_CALL
            return replace(self._violation(kind, index), tool_call_id=call_id)
        return None

    def other_bytes(self, logged: Header | None, sent: Header | None) -> Violation | None:
        """Judge what is the same JSON in other bytes, if asked to."""
        if not self._options.byte_exact:
            return None
        index = self._first_difference(self._options)
        if index is not None:
            return self._violation(ViolationKind.BYTES_DIFFER, index)
        fields = differing_fields(logged, sent, byte_exact=True) if sent is not None else ()
        return self._of_header(ViolationKind.BYTES_DIFFER, fields) if fields else None

    def _violation(self, kind: ViolationKind, index: int) -> Violation:
        log_seq = None
        if self._seqs is not None and index < len(self._seqs):
            log_seq = self._seqs[index]
        return Violation(kind, index, len(self._request), len(self._fold), log_seq=log_seq)

    def _of_header(self, kind: ViolationKind, fields: tuple[str, ...]) -> Violation:
        return Violation(kind, 0, len(self._request), len(self._fold), header_fields=fields)


def _surplus(
    messages: Sequence[Message], numbers: Sequence[int], others: Sequence[int]
) -> tuple[Sketch, ...]:
    """Return sketches of the first messages that the others, a multiset, do not have."""
    left = Counter(others)
    found: list[Sketch] = []
    for message, number in zip(messages, numbers, strict=True):
        if left[number] > 0:
            left[number] -= 1
        elif len(found) < MAX_SKETCHES:
            found.append(sketch(message))
        else:
            break
    return tuple(found)
