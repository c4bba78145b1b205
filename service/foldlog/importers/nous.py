"""Contexts of Nous, versions 1 to 3: one JSON document, of messages (1) or of events (2, 3).

Events keep their seqs, and ranges go on naming what they named. What surrounds them, such as the
system prompt and the counters, follows as one custom event. Where Nous would repair in silence, by
dropping, renumbering or making up, the file is refused with the element's name; with salvage, the
elements before it are taken. Numbers of elements stand where others have line numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from foldlog.client.bodies import (
    Body,
    Custom,
    StepEnd,
    StepStart,
    ToolCallState,
    TurnEnd,
    TurnStart,
)
from foldlog.client.new_events import NewEvent
from foldlog.core.event import PositionRange, ToolCallPhase
from foldlog.core.message import Message, OpaquePart, Part, Role, ToolCall
from foldlog.importers.dsh_rows import is_count
from foldlog.importers.errors import DamagedFileError, UnreadableFileError
from foldlog.importers.json_value import dumps, parsed, text_in
from foldlog.importers.log import Entry, Imported, Log, Options
from foldlog.importers.report import NoteKind, Report
from foldlog.importers.source import Source, note_alterations
from foldlog.importers.times import ns_of_iso

NAME: Final = "nous"
VERSIONS: Final = (1, 2, 3)
ROLES: Final = {
    "system_message": Role.SYSTEM,
    "user_message": Role.USER,
    "assistant_message": Role.ASSISTANT,
    "tool_result": Role.TOOL,
}
ROLE_NAMES: Final = {
    "system": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
}
Data = Mapping[str, Any]


def read(source: Source, report: Report, options: Options) -> Imported:
    """Read a context. It has no session id."""
    data = source.whole()
    report.lines = data.count(b"\n") + 1
    try:
        found = parsed(data)
    except ValueError as error:
        raise UnreadableFileError(f"it is not JSON: {error}") from None
    blob = found.value
    if not isinstance(blob, dict) or blob.get("version") not in VERSIONS:
        version = blob.get("version") if isinstance(blob, dict) else None
        raise UnreadableFileError(f"version {version} of a Nous context is not known")
    note_alterations(found, 1, report)
    log = Log(NAME, report, time_ns=ns_of_iso(blob.get("started_at")))
    entries = _Context(log, options.salvage).entries(blob, data if found.alterations else b"")
    name = blob.get("agent_name")
    told = {"agent_name": name} if isinstance(name, str) else {}
    metadata = dumps({"imported": {"format": NAME, "version": blob["version"], **told}})
    return Imported(entries, None, {"imported_from": NAME}, metadata)


@dataclass(slots=True)
class _Context:
    log: Log
    salvage: bool

    def entries(self, blob: dict[str, Any], as_it_was: bytes) -> Iterator[Entry]:
        events, messages = blob.get("events"), blob.get("messages")
        held = "messages" if blob["version"] == 1 else "events"
        if held == "events" and not isinstance(events, list) and isinstance(messages, list):
            told = "events is no list: the messages beside it count"
            self.log.report.note(NoteKind.ASSUMED, None, told)
            held = "messages"
        elif held == "events" and messages:
            told = "messages beside the events is taken for the copy that Nous makes of them"
            self.log.report.note(NoteKind.ASSUMED, None, told)
        elements = blob.get(held)
        if not isinstance(elements, list):
            raise UnreadableFileError(f"its {held} are no list")
        make = self._message if held == "messages" else self._event
        yield from self._elements(elements, held.removesuffix("s"), make)
        rest = {name: value for name, value in blob.items() if name not in ("events", "messages")}
        yield from self.log.custom("context", dumps(rest).encode(), 1)
        if as_it_was:
            yield from self.log.custom("as-it-was", as_it_was, 1)

    def _elements(
        self, elements: list[Any], what: str, make: Callable[[Any, int], Iterator[Entry]]
    ) -> Iterator[Entry]:
        for index, element in enumerate(elements):
            try:
                yield from make(element, index)
            except ValueError as error:
                why = f"{what} {index} of {len(elements)}: {error}"
                if not self.salvage:
                    raise DamagedFileError(index + 1, why) from None
                told = f"left out with all that follows: {why}"
                self.log.report.note(NoteKind.DAMAGED, index + 1, told)
                return

    def _message(self, element: Any, index: int) -> Iterator[Entry]:
        if not isinstance(element, Mapping):
            raise ValueError("it is no object")
        role = element.get("role")
        self.log.report.read[role if isinstance(role, str) else "no role"] += 1
        made = self._made(ROLE_NAMES.get(role), element, index) if isinstance(role, str) else None
        body = Custom(f"{NAME}.message", dumps(element).encode()) if made is None else made
        time_ns = ns_of_iso(element.get("created_at"))
        extra = None if made is None else dumps({NAME: _without_content(element)})
        return self.log.put(NewEvent(body, time_ns, extra_json=extra), index + 1)

    def _made(self, role: Role | None, data: Data, index: int) -> Message | None:
        """Return a message, or None, and say why, for one that the log has no form for."""
        if role is None:
            told = f"{data.get('role')!r} is no role: it is kept as a custom event"
        elif role == Role.TOOL and not isinstance(data.get("tool_call_id"), str):
            told = "a result without the id of its call is kept as a custom event"
        else:
            return message_of(role, data)
        self.log.report.note(NoteKind.UNREPRESENTED, index + 1, told)
        return None

    def _event(self, element: Any, index: int) -> Iterator[Entry]:
        if not isinstance(element, Mapping):
            raise ValueError("it is no object")
        kind, data = element.get("type"), element.get("data", {})
        if not isinstance(kind, str) or not kind:
            raise ValueError("it has no type")
        self.log.report.read[kind] += 1
        seq = self._seq(element, index)
        body = self._body(kind, data, index)
        is_letter = body is None
        if body is None:
            body = Custom(f"{NAME}.{kind}", dumps(element).encode())
        extra = None if is_letter else dumps({NAME: _envelope(element)})
        op = data.get("surface_op") if isinstance(data, Mapping) else None
        range_ = self._range(op, seq, index)
        if range_ is not None and not isinstance(body, Message):
            raise ValueError("only a message that the log has a form for can replace")
        self._take_time(element, index)
        event = NewEvent(body, replace=range_, extra_json=extra)
        return self.log.put(event, index + 1, seq)

    def _seq(self, element: Data, index: int) -> int:
        seq = element.get("seq")
        if seq is None:
            told = f"it has no seq: {self.log.next_seq} was taken"
            self.log.report.note(NoteKind.ASSUMED, index + 1, told)
            return self.log.next_seq
        if not is_count(seq):
            raise ValueError("its seq is no number from 0 on")
        if seq < self.log.next_seq:
            raise ValueError(f"its seq {seq} is behind that of the event before it")
        return seq

    def _take_time(self, element: Data, index: int) -> None:
        time_ns = ns_of_iso(element.get("time"))
        if time_ns is None:
            told = "it has no time: that of the event before it was taken"
            self.log.report.note(NoteKind.ASSUMED, index + 1, told)
        else:
            self.log.time_ns = time_ns

    def _body(self, kind: str, data: Any, index: int) -> Body | None:
        """Return what the log has words for; None is kept to the letter."""
        if kind not in ROLES and kind not in BODIES:
            return None
        if not isinstance(data, Mapping):
            raise ValueError("its data is no object")
        if kind in ROLES:
            return self._made(ROLES[kind], data, index)
        return BODIES[kind](data)

    def _range(self, op: object, seq: int, index: int) -> PositionRange | None:
        """Return the range of positions that an event replaces.

        Raises ValueError for one that means nothing, or that lies beyond the event itself.
        """
        if op is None or op in ("append", ["append"]):
            return None
        match op:
            case ["replace", int() as start, int() as stop] if 0 <= start <= stop:
                pass
            case _:
                raise ValueError(f"{dumps(op)} is no surface_op")
        if start == seq:
            return None
        if start > seq:
            raise ValueError(f"it is to stand at {start}, beyond its own seq {seq}")
        if stop >= seq:
            told = f"its range ends at {stop}, beyond its own seq {seq}: it covers what is there"
            self.log.report.note(NoteKind.CHANGED, index + 1, told)
        return PositionRange(start, min(stop, seq - 1))


def message_of(role: Role, data: Data) -> Message:
    """Return the message of a map: every field for every role. Raises ValueError."""
    metadata = data.get("metadata")
    return Message(
        role,
        _content(data.get("content")),
        _calls(data.get("tool_calls")),
        text_in(data, "tool_call_id"),
        text_in(data, "name"),
        text_in(data, "reasoning_content"),
        dumps(metadata) if metadata else None,
    )


def _content(content: object) -> str | tuple[Part, ...] | None:
    if content is None or isinstance(content, str):
        return content
    return (OpaquePart(f"{NAME}.content", dumps(content)),)


def _calls(calls: object) -> tuple[ToolCall, ...]:
    if not calls:
        return ()
    if not isinstance(calls, list) or not all(isinstance(call, Mapping) for call in calls):
        raise ValueError("its tool_calls are no list of objects")
    return tuple(_call(call) for call in calls)


def _call(call: Data) -> ToolCall:
    inner = call.get("function")
    named = inner if isinstance(inner, Mapping) else call
    arguments = named.get("arguments")
    is_text = arguments is None or isinstance(arguments, str)
    return ToolCall(
        text_in(call, "id"), text_in(named, "name"), arguments if is_text else dumps(arguments)
    )


def _number(data: Data, name: str) -> int | None:
    value = data.get(name)
    return value if is_count(value) else None


def _tool_call(data: Data) -> Body:
    call = _call(data)
    return ToolCallState(call.id, call.name, call.arguments, phase=ToolCallPhase.DISPATCHED)


# Bookkeeping that the log has words for.
BODIES: Final[Mapping[str, Callable[[Data], Body]]] = {
    "turn_start": lambda data: TurnStart(_number(data, "turn"), text_in(data, "reason")),
    "turn_end": lambda data: TurnEnd(_number(data, "turn"), text_in(data, "reason")),
    "step_start": lambda data: StepStart(_number(data, "step"), text_in(data, "reason")),
    "step_end": lambda data: StepEnd(_number(data, "step"), text_in(data, "reason")),
    "tool_call": _tool_call,
}


def _envelope(element: Data) -> dict[str, Any]:
    """Return what an event says beside the content of its message."""
    return {**element, "data": _without_content(element.get("data", {}))}


def _without_content(data: Data) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name != "content"}
