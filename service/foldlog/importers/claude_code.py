"""Sessions of Claude Code: JSON Lines, each a line of a tree.

The main line becomes the conversation. What the user went back on is imported where it happened,
and a rewind undoes it. Lines of subagents, of bookkeeping, and errors that no model saw are kept to
the letter as custom events. The lines of one answer become one message, and a compaction's summary
takes the place of what it sums up. With salvage, lines around the damage are taken: each stands by
itself, and one whose parent is gone goes on from the line before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from foldlog.client.bodies import Rewind
from foldlog.client.new_events import NewEvent, events_of
from foldlog.converters import anthropic
from foldlog.core.errors import InvalidFieldError
from foldlog.core.message import Message
from foldlog.importers.claude_tree import MESSAGES, Node, Tree, kept_from
from foldlog.importers.errors import UnreadableFileError
from foldlog.importers.json_value import dumps, parsed
from foldlog.importers.log import Entry, Imported, Log, Options, replacing_all, with_ids
from foldlog.importers.report import NoteKind, Report
from foldlog.importers.source import Line, Row, Salvage, Source
from foldlog.importers.times import ns_of_iso

NAME: Final = "claude-code"
# What is said of a session, by the name of the member that says it.
SESSION_FIELDS: Final = {
    "sessionId": "session_id",
    "agentId": "agent_id",
    "cwd": "cwd",
    "gitBranch": "git_branch",
    "version": "version",
}
# Lines that tell that the model saw something which the file does not hold.
UNSEEN: Final = {
    "attachment": "what the model was shown of it is not in the file",
    "system.microcompact_boundary": "which words took the place of the results is not in the file",
}


def read(source: Source, report: Report, options: Options) -> Imported:
    """Read a session: once for the tree, then for the events. Memory grows with the lines only."""
    salvage = Salvage.AROUND if options.salvage else Salvage.NOTHING
    tree = Tree(report)
    log = Log(NAME, report, options.salvage)
    said: dict[bool, dict[str, str]] = {False: {}, True: {}}
    for row in Source(source.file).rows(Report(NAME), salvage):
        tree.add(row)
        log.time_ns = log.time_ns or ns_of_iso(row.fields.get("timestamp"))
        said[row.fields.get("isSidechain") is True] |= _said(row)
    tree.finish()
    if not tree.main:
        raise UnreadableFileError("it holds no message of a Claude Code session")
    rows = source.rows(report, salvage)
    entries = _Conversation(source, tree, log).entries(rows)
    ours = said[tree.is_aside]
    told = {SESSION_FIELDS[name]: text for name, text in ours.items()}
    metadata = dumps({"imported": {"format": NAME, **told}})
    return Imported(entries, _session_id(ours, tree), {"imported_from": NAME}, metadata)


def _said(row: Row) -> dict[str, str]:
    values = {name: row.fields.get(name) for name in SESSION_FIELDS}
    return {name: value for name, value in values.items() if isinstance(value, str)}


def _session_id(said: Mapping[str, str], tree: Tree) -> str | None:
    """Return the session's id; that of a subagent follows its session's."""
    if tree.is_aside and "agentId" in said:
        return f"{said.get('sessionId', NAME)}/{said['agentId']}"
    return said.get("sessionId")


@dataclass(slots=True)
class _Conversation:
    source: Source
    tree: Tree
    log: Log
    undone_after: int | None = None
    kept_from: str | None = None
    seqs: dict[str, int] = field(default_factory=dict)

    def entries(self, rows: Iterator[Row]) -> Iterator[Entry]:
        line = 0
        for row in rows:
            line = row.number
            self.log.report.read[_name(row)] += 1
            time_ns = ns_of_iso(row.fields.get("timestamp"))
            self.log.time_ns = self.log.time_ns if time_ns is None else time_ns
            yield from self._row(row)
        yield from self._back(line)

    def _row(self, row: Row) -> Iterator[Entry]:
        node = self._node(row)
        if node is None or node.kind not in MESSAGES or not self.tree.belongs(node):
            return self._bookkeeping(row, node)
        if row.fields.get("isApiErrorMessage") is True:
            return self.log.raw(row, kind="api-error")
        return self._message(row, node)

    def _node(self, row: Row) -> Node | None:
        uuid = row.fields.get("uuid")
        node = self.tree.nodes.get(uuid) if isinstance(uuid, str) else None
        return node if node is not None and node.number == row.number else None

    def _bookkeeping(self, row: Row, node: Node | None) -> Iterator[Entry]:
        if node is not None and node.is_compaction:
            self.kept_from = kept_from(row.fields)
        if (unseen := UNSEEN.get(_name(row))) is not None:
            self.log.report.note(NoteKind.UNREPRESENTED, row.number, f"{_name(row)}: {unseen}")
        if row.number in self.tree.repeated:
            return self.log.raw(row, kind="repeated")
        if node is not None and not self.tree.belongs(node):
            return self.log.raw(row, kind="sidechain")
        return self.log.raw(row)

    def _message(self, row: Row, node: Node) -> Iterator[Entry]:
        blocks = self.tree.answers[node.answer] if node.kind == "assistant" else [node]
        if blocks[0] is not node:
            yield from self.log.beside(row)
            return
        if node.uuid in self.tree.main:
            yield from self._back(row.number)
        elif self.undone_after is None:
            self.undone_after = self.log.next_seq - 1
            told = "from here the conversation was gone back on: it is undone"
            self.log.report.note(NoteKind.UNDONE, row.number, told)
        if node.uuid in self.tree.kept_from:
            self.seqs[node.uuid] = self.log.next_seq
        yield from self._said([row, *map(self._block, blocks[1:])])
        yield from self.log.beside(row)

    def _block(self, node: Node) -> Row:
        line = Line(node.number, node.offset, self.source.line_at(node.offset), True)
        fields = parsed(line.data).value
        assert isinstance(fields, dict)
        return Row(line, fields)

    def _back(self, line: int) -> Iterator[Entry]:
        """Undo what was put since the main line was left."""
        if self.undone_after is not None:
            target, self.undone_after = self.undone_after, None
            yield from self.log.put(Rewind(target), line)

    def _said(self, rows: Sequence[Row]) -> Iterator[Entry]:
        """Put the message of one line, or of the several that one answer is."""
        row = rows[0]
        try:
            converted = anthropic.from_request({"messages": [_provider_message(rows)]})
        except InvalidFieldError as error:
            for each in rows:
                yield from self.log.raw(each, str(error).replace("messages[0]", "message"))
            return
        ids = {
            "uuids": [each.fields.get("uuid") for each in rows],
            "message_id": _message_of(row).get("id"),
        }
        first, *others = [_with_ids(event, ids) for event in events_of(converted)]
        first = replace(first, extra_json=dumps({NAME: [_envelope(each) for each in rows]}))
        if row.fields.get("isCompactSummary") is True:
            first = self._summing_up(first, row)
        yield from self.log.put_all([first, *others], row.number)

    def _summing_up(self, event: NewEvent, row: Row) -> NewEvent:
        kept, self.kept_from = self.kept_from, None
        if kept is not None and kept not in self.seqs:
            told = f"the compaction keeps {kept}, which is not in the file: it keeps nothing here"
            self.log.report.note(NoteKind.ASSUMED, row.number, told)
        stop = None if kept is None or kept not in self.seqs else self.seqs[kept] - 1
        return replacing_all(event, self.log, stop=stop)


def _name(row: Row) -> str:
    subtype = row.fields.get("subtype")
    is_told = row.kind == "system" and isinstance(subtype, str)
    return f"{row.kind}.{subtype}" if is_told else row.kind


def _message_of(row: Row) -> dict[str, Any]:
    message = row.fields.get("message")
    return message if isinstance(message, dict) else {}


def _provider_message(rows: Sequence[Row]) -> dict[str, object]:
    messages = [_message_of(row) for row in rows]
    contents = [message.get("content") for message in messages]
    blocks = [block for content in contents for block in _blocks(content)]
    content = contents[0] if len(rows) == 1 else blocks
    return {"role": messages[0].get("role", rows[0].kind), "content": content}


def _blocks(content: object) -> list[object]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def _envelope(row: Row) -> dict[str, object]:
    """Return what a line says beside the content of its message."""
    message = {name: value for name, value in _message_of(row).items() if name != "content"}
    return {**row.fields, "message": message}


def _with_ids(event: NewEvent, ids: Mapping[str, Any]) -> NewEvent:
    assert isinstance(event.body, Message)
    return replace(event, body=with_ids(event.body, NAME, ids))
