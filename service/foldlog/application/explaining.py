"""The cache report: how the request of each step departs from the one of the step before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from foldlog.application import decisions
from foldlog.application.contents import Contents
from foldlog.application.domain import Session
from foldlog.application.fold import EventRef, Live
from foldlog.application.history import spans_of
from foldlog.application.lane import Services
from foldlog.application.reading import Reading
from foldlog.application.requests import encoded_folded
from foldlog.application.retrace import Retraced, StepPlace, Touch, common_count, scan
from foldlog.codec import message_from_proto
from foldlog.core.change import ChangeKind, header_change, same_but_for_bytes, tokens_of
from foldlog.core.errors import EventCorruptError, InvalidFieldError
from foldlog.core.event import EventType
from foldlog.core.header import Header
from foldlog.core.request import encoded_header
from foldlog.v1.service_pb2 import FoldedMessage


@dataclass(frozen=True, slots=True)
class Change:
    """How one step's request departs from the one before. The first has none before it."""

    step_seq: int
    previous_step_seq: int | None = None
    is_extension: bool = False
    kind: ChangeKind = ChangeKind.UNSPECIFIED
    message_index: int | None = None
    header_fields: tuple[str, ...] = ()
    cause_seq: int | None = None
    previous_messages: int = 0
    lost_messages: int = 0
    lost_bytes: int = 0

    @property
    def lost_tokens(self) -> int:
        """About how many tokens were lost."""
        return tokens_of(self.lost_bytes)


@dataclass(frozen=True, slots=True)
class Report:
    """Changes in the order of the log. `next_step` is the step that the next page begins with."""

    changes: list[Change]
    step_count: int
    next_step: int | None
    next_seq: int


@dataclass(frozen=True, slots=True)
class _Request:
    """A step's request: which header, which entries."""

    step: StepPlace
    header: EventRef | None
    entries: tuple[Live, ...]
    damage: EventCorruptError | None

    def sound(self) -> _Request:
        """Return the request. Raises EventCorruptError if an event it needs is damaged."""
        if self.damage is not None:
            raise self.damage
        return self


class Explaining:
    """Explains requests. Each report reads the whole log once."""

    def __init__(self, services: Services, reading: Reading) -> None:
        self._services = services
        self._reading = reading

    async def step(self, session_id: str, step_seq: int) -> Report:
        """Explain one step. Raises InvalidFieldError if none began at the seq."""
        head = await self._reading.head(session_id)
        decisions.require_seq(head, step_seq, "step_seq")
        return await self._services.readers.run(self._step, head, step_seq)

    async def breaks(self, session_id: str, from_step: int, page_size: int) -> Report:
        """List the steps from a seq on whose requests do not extend the one before."""
        head = await self._reading.head(session_id)
        return await self._services.readers.run(self._breaks, head, from_step, page_size)

    def _step(self, head: Session, step_seq: int) -> Report:
        comparison = self._comparison(head)
        for before, after, touches in comparison.pairs():
            if after.step.seq == step_seq:
                change = comparison.change(before, after, touches)
                return Report([change], 1, None, head.next_seq)
        raise InvalidFieldError.of("step_seq", f"no step_start stands at {step_seq}")

    def _breaks(self, head: Session, from_step: int, page_size: int) -> Report:
        comparison = self._comparison(head)
        changes: list[Change] = []
        count = 0
        for before, after, touches in comparison.pairs():
            if after.step.seq < from_step:
                continue
            if len(changes) == page_size:
                return Report(changes, count, after.step.seq, head.next_seq)
            count += 1
            if before is None or comparison.is_plain_extension(before, after, touches):
                continue
            change = comparison.change(before, after, touches)
            if not change.is_extension:
                changes.append(change)
        return Report(changes, count, None, head.next_seq)

    def _comparison(self, head: Session) -> _Comparison:
        return _Comparison(self._services, head)


class _Comparison:
    """The requests of a log's steps, one beside the next. Blocking."""

    def __init__(self, services: Services, head: Session) -> None:
        spans = spans_of(head)
        reader = services.history.reader.anew()
        self._scanned = scan(reader, spans)
        self._contents = Contents(reader, head.id, head.whole_from_seq)

    def pairs(self) -> Iterator[tuple[_Request | None, _Request, list[Touch]]]:
        """Yield each step's request with the one before it and what touched it in between.

        The newest touch comes first.
        """
        retraced = Retraced(self._scanned)
        before: _Request | None = None
        for step in sorted(self._scanned.steps, key=lambda step: (step.next_seq, step.seq)):
            fold = retraced.move(step.next_seq)
            after = _Request(step, fold.header, tuple(fold.surface), fold.damage)
            yield before, after, list(retraced.touches())
            retraced.follow(after.entries)
            before = after

    def is_plain_extension(self, before: _Request, after: _Request, touches: list[Touch]) -> bool:
        """Return whether nothing can have changed, without a look at any content."""
        return not touches and before.sound().header == after.sound().header

    def change(self, before: _Request | None, after: _Request, touches: list[Touch]) -> Change:
        """Return how a request departs from the one before."""
        after.sound()
        if before is None:
            return Change(after.step.seq)
        before.sound()
        old, new = self._headers(before, after)
        kind, fields = header_change(old, new)
        index = self._first_difference(before.entries, after.entries)
        count = len(before.entries)
        found = Change(
            after.step.seq,
            before.step.seq,
            is_extension=not fields and index == count,
            message_index=index if index < count else None,
            header_fields=fields,
            previous_messages=count,
        )
        if found.is_extension:
            return found
        if fields:
            lost, size = before.entries, 0 if old is None else len(encoded_header(old))
            causes = (touch for touch in touches if touch.is_header)
        else:
            lost, size = before.entries[index:], 0
            causes = (t for t in touches if t.index <= index and t.type != EventType.REQUEST_HEADER)
            kind = self._kind(before.entries[index], after.entries[index : index + 1])
        cause = next(causes, None)
        if cause is not None and cause.type == EventType.REWIND:
            kind = ChangeKind.REWIND
        size += self._contents.size_bytes(lost)
        return replace(
            found,
            kind=kind,
            cause_seq=None if cause is None else cause.seq,
            lost_messages=len(lost),
            lost_bytes=size,
        )

    def _headers(self, before: _Request, after: _Request) -> tuple[Header | None, Header | None]:
        old = self._contents.header(before.header)
        return old, old if before.header == after.header else self._contents.header(after.header)

    def _first_difference(self, before: tuple[Live, ...], after: tuple[Live, ...]) -> int:
        """Return the index of the first message that is not the same, byte for byte."""
        index = common_count(before, after)
        while index < min(len(before), len(after)):
            if before[index].row != after[index].row:
                old = self._contents.folded_or_none(before[index])
                new = self._contents.folded_or_none(after[index])
                if old is None or new is None or encoded_folded(old) != encoded_folded(new):
                    return index
            index += 1
        return index

    def _kind(self, before: Live, after: tuple[Live, ...]) -> ChangeKind:
        old = self._contents.folded_or_none(before)
        new = self._contents.folded_or_none(after[0]) if after else None
        if old is None or new is None:
            return ChangeKind.REPLACE
        one, other = FoldedMessage.FromString(old), FoldedMessage.FromString(new)
        is_same = one.group == other.group and same_but_for_bytes(
            message_from_proto(one.message), message_from_proto(other.message)
        )
        return ChangeKind.BYTES if is_same else ChangeKind.REPLACE
