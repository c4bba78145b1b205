"""Rollouts of Codex: JSON Lines of {timestamp, type, payload}.

The response items become messages through the Responses converter: those that one response put out
become one. Everything else is kept to the letter as custom events; tasks are turns. A compaction
takes the place of all before it, a rollback of turns is a rewind. With salvage, lines around the
damage are taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from foldlog.client.bodies import Rewind, TurnEnd, TurnStart
from foldlog.client.new_events import NewEvent, user
from foldlog.converters import openai_responses
from foldlog.converters.responses_items import is_continued
from foldlog.core.errors import InvalidFieldError
from foldlog.core.message import Message, Role, TextPart
from foldlog.importers.errors import UnreadableFileError
from foldlog.importers.json_value import dumps, text_in
from foldlog.importers.log import Entry, Imported, Log, Options, replacing_all, with_ids
from foldlog.importers.report import NoteKind, Report
from foldlog.importers.source import Row, Salvage, Source
from foldlog.importers.times import ns_of_iso

NAME: Final = "codex"
ITEM: Final = "response_item"
SESSION: Final = "session_meta"
SESSION_FIELDS: Final = ("id", "cwd", "originator", "cli_version", "forked_from_id")
# Items that Codex keeps for itself and sends to no model.
KEPT_BACK: Final = frozenset({"ghost_snapshot"})
TURN_STARTS: Final = frozenset({"task_started", "turn_started"})
TURN_ENDS: Final = {
    "task_complete": "completed",
    "turn_complete": "completed",
    "turn_aborted": "interrupted",
}
# How messages begin that Codex puts in as the user's and that begin no turn.
CONTEXT_MARKS: Final = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<skill>",
    "<user_shell_command>",
    "<turn_aborted>",
    "<subagent_notification>",
)


def read(source: Source, report: Report, options: Options) -> Imported:
    """Read a rollout, in one pass: what waits for the end of a response is all that is held."""
    salvage = Salvage.AROUND if options.salvage else Salvage.NOTHING
    said = _session_of(source, salvage)
    log = Log(NAME, report, options.salvage, time_ns=ns_of_iso(said.get("timestamp")))
    entries = _Rollout(log).entries(source.rows(report, salvage))
    told = {name: said[name] for name in SESSION_FIELDS if isinstance(said.get(name), str)}
    metadata = dumps({"imported": {"format": NAME, **told}})
    session_id = said.get("id")
    return Imported(
        entries,
        session_id if isinstance(session_id, str) else None,
        {"imported_from": NAME},
        metadata,
    )


def _session_of(source: Source, salvage: Salvage) -> dict[str, Any]:
    rows = Source(source.file).rows(Report(NAME), salvage)
    row = next(rows, None)
    if row is None:
        raise UnreadableFileError("it holds no line of a Codex rollout")
    return _payload(row)


def _payload(row: Row) -> dict[str, Any]:
    """Return what a line says; the lines of old rollouts say it without an envelope."""
    payload = row.fields.get("payload")
    return payload if isinstance(payload, dict) else row.fields


def _kind(row: Row) -> str:
    if "payload" in row.fields:
        return row.kind
    is_session = "type" not in row.fields and "id" in row.fields
    return SESSION if is_session else ITEM if "type" in row.fields else "state"


@dataclass(slots=True)
class _Rollout:
    log: Log
    run: list[tuple[Row, dict[str, Any]]] = field(default_factory=list)
    waiting: list[tuple[Row, str]] = field(default_factory=list)
    # The last seq before each of the user's turns that counts.
    turns: list[int] = field(default_factory=list)
    open_turn_seq: int | None = None

    def entries(self, rows: Iterator[Row]) -> Iterator[Entry]:
        for row in rows:
            kind, payload = _kind(row), _payload(row)
            self._count(kind, payload)
            self._take_time(row)
            yield from self._row(kind, payload, row)
        yield from self._said()

    def _take_time(self, row: Row) -> None:
        time_ns = ns_of_iso(row.fields.get("timestamp"))
        self.log.time_ns = self.log.time_ns if time_ns is None else time_ns

    def _count(self, kind: str, payload: dict[str, Any]) -> None:
        inner = payload.get("type")
        is_told = kind in (ITEM, "event_msg") and isinstance(inner, str)
        self.log.report.read[f"{kind}.{inner}" if is_told else kind] += 1

    def _row(self, kind: str, payload: dict[str, Any], row: Row) -> Iterator[Entry]:
        if kind == ITEM and text_in(payload, "type") not in KEPT_BACK:
            yield from self._item(row, payload)
        elif kind == "compacted":
            yield from self._compacted(row, payload)
        elif kind == "event_msg":
            yield from self._told(row, payload)
        else:
            yield from self._aside(row, kind)

    def _item(self, row: Row, item: dict[str, Any]) -> Iterator[Entry]:
        if self.run and not self._continues(item):
            yield from self._said()
        self.run.append((row, item))
        if not self._may_go_on():
            yield from self._said()

    def _continues(self, item: dict[str, Any]) -> bool:
        before = self.run[-1][1]
        try:
            return is_continued((before, "item"), (item, "item"))
        except InvalidFieldError:
            return False

    def _may_go_on(self) -> bool:
        """Return whether the model may have put out more of the same response."""
        item = self.run[-1][1]
        try:
            return is_continued((item, "item"), ({"type": "reasoning"}, "item"))
        except InvalidFieldError:
            return False

    def _said(self) -> Iterator[Entry]:
        """Put the message of the items at hand, then what came in between them."""
        run, waiting = self.run, self.waiting
        self.run, self.waiting = [], []
        if run:
            yield from self._message(run)
        now = self.log.time_ns
        for row, kind in waiting:
            self._take_time(row)
            yield from self.log.custom(kind, row.line.data, row.number)
        self.log.time_ns = now

    def _message(self, run: list[tuple[Row, dict[str, Any]]]) -> Iterator[Entry]:
        row = run[0][0]
        try:
            messages = openai_responses.from_request({"input": [item for _, item in run]}).messages
        except InvalidFieldError as error:
            for each, _ in run:
                yield from self.log.raw(each, str(error).replace("input[0]", "payload"))
            return
        time_ns = ns_of_iso(row.fields.get("timestamp"))
        extra = dumps({NAME: [_envelope(each) for each, _ in run]})
        for message in messages:
            self._note_turn(message)
            ids = [item["id"] for _, item in run if isinstance(item.get("id"), str)]
            kept = with_ids(message, NAME, {"ids": ids or None})
            yield from self.log.put(NewEvent(kept, time_ns, extra_json=extra), row.number)
        for each, _ in run:
            yield from self.log.beside(each)

    def _note_turn(self, message: Message) -> None:
        if message.role != Role.USER or _text_of(message).startswith(CONTEXT_MARKS):
            return
        start = self.open_turn_seq
        is_first = start is not None and (not self.turns or self.turns[-1] < start - 1)
        self.turns.append((start if is_first and start is not None else self.log.next_seq) - 1)

    def _aside(self, row: Row, kind: str) -> Iterator[Entry]:
        """Put a line to the letter, once the response that it falls into has ended."""
        if not self.run:
            return self.log.custom(kind, row.line.data, row.number)
        self.waiting.append((row, kind))
        return iter(())

    def _told(self, row: Row, payload: dict[str, Any]) -> Iterator[Entry]:
        kind = text_in(payload, "type")
        yield from self._aside(row, "event_msg" if kind is None else f"event_msg.{kind}")
        if kind in TURN_STARTS:
            yield from self._said()
            self.open_turn_seq = self.log.next_seq
            yield from self.log.put(TurnStart(), row.number)
        elif kind in TURN_ENDS and self.open_turn_seq is not None:
            yield from self._said()
            self.open_turn_seq = None
            yield from self.log.put(TurnEnd(reason=TURN_ENDS[kind]), row.number)
        elif kind == "thread_rolled_back":
            yield from self._said()
            yield from self._rolled_back(row, payload.get("num_turns"))

    def _rolled_back(self, row: Row, count: object) -> Iterator[Entry]:
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            self.log.report.note(NoteKind.UNREPRESENTED, row.number, "it rolls back no turns")
            return
        if count > len(self.turns):
            told = f"it rolls back {count} turns, {len(self.turns)} are known: all of those"
            self.log.report.note(NoteKind.ASSUMED, row.number, told)
        if not self.turns:
            return
        target = self.turns[-count:][0]
        del self.turns[-count:]
        self.open_turn_seq = None
        told = f"{count} turns before it were rolled back: they are undone"
        self.log.report.note(NoteKind.UNDONE, row.number, told)
        yield from self.log.put(Rewind(target), row.number)

    def _compacted(self, row: Row, payload: dict[str, Any]) -> Iterator[Entry]:
        yield from self._said()
        yield from self.log.custom("compacted", row.line.data, row.number)
        self.turns.clear()
        history = payload.get("replacement_history")
        messages = self._replacement(row, payload, history)
        if not messages:
            told = "the history it leaves is empty: nothing before it counts"
            self.log.report.note(NoteKind.ASSUMED, row.number, told)
            self.open_turn_seq = None
            yield from self.log.put(Rewind(-1), row.number)
            return
        first, *others = [NewEvent(message) for message in messages]
        yield from self.log.put(replacing_all(first, self.log), row.number)
        yield from self.log.put_all(others, row.number)

    def _replacement(self, row: Row, payload: dict[str, Any], history: object) -> list[Message]:
        if isinstance(history, list):
            try:
                return list(openai_responses.from_request({"input": history}).messages)
            except InvalidFieldError as error:
                told = f"the history it leaves cannot be read: {error}"
                self.log.report.note(NoteKind.UNREPRESENTED, row.number, told)
        told = "what it leaves beside the summary is not in the file: the summary alone counts"
        self.log.report.note(NoteKind.ASSUMED, row.number, told)
        summary = payload.get("message")
        return [user(summary if isinstance(summary, str) else "")]


def _envelope(row: Row) -> dict[str, Any]:
    """Return what a line says beside its item."""
    if "payload" not in row.fields:
        return {}
    return {name: value for name, value in row.fields.items() if name != "payload"}


def _text_of(message: Message) -> str:
    if isinstance(message.content, str):
        return message.content
    texts = (part.text for part in message.content or () if isinstance(part, TextPart))
    return next(texts, "").lstrip()
