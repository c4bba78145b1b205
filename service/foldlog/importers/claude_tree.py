"""The tree of a Claude Code session: which of its lines are the conversation as it stands.

Lines name their parents. The main line leads from the last message to the root; what the user went
back on stands on other branches. Two things look like branches and are none: the blocks of one
answer, which are lines of their own, and the results of tools that ran at the same time, each a
child of its call's line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from foldlog.importers.json_value import text_in
from foldlog.importers.report import NoteKind, Report
from foldlog.importers.source import Row

MESSAGES: Final = frozenset({"user", "assistant"})


@dataclass(slots=True)
class Node:
    """A line that has a uuid: what the tree needs to know of it. `answer` names the answer that
    a line of the assistant is a block of, by the uuid of its first line.
    """

    uuid: str
    number: int
    offset: int
    parent: str | None
    kind: str
    message_id: str | None = None
    result_ids: tuple[str, ...] = ()
    is_aside: bool = False
    is_compaction: bool = False
    answer: str = ""


@dataclass(slots=True)
class Tree:
    """Grows line by line; `finish` decides."""

    report: Report
    nodes: dict[str, Node] = field(default_factory=dict)
    main: set[str] = field(default_factory=set)
    answers: dict[str, list[Node]] = field(default_factory=dict)
    kept_from: set[str] = field(default_factory=set)
    repeated: set[int] = field(default_factory=set)
    first_time_ns: int | None = None
    session: dict[str, object] = field(default_factory=dict)
    is_aside: bool = False
    _last: str | None = None
    _siblings: dict[tuple[str, str | None], str] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        """Take note of a line."""
        fields, uuid = row.fields, row.fields.get("uuid")
        if not isinstance(uuid, str):
            return
        if uuid in self.nodes:
            self.repeated.add(row.number)
            self.report.note(NoteKind.UNREPRESENTED, row.number, f"{uuid} stands twice")
            return
        node = Node(
            uuid,
            row.number,
            row.line.offset,
            text_in(fields, "parentUuid"),
            row.kind,
            is_aside=fields.get("isSidechain") is True,
            is_compaction=fields.get("subtype") == "compact_boundary",
        )
        message = fields.get("message")
        if isinstance(message, Mapping):
            node.message_id = text_in(message, "id") if row.kind == "assistant" else None
            node.result_ids = tuple(result_ids(message.get("content")))
        if node.is_compaction:
            self._continue(node, fields)
        self.nodes[uuid] = node
        if not node.is_aside:
            self._last = uuid

    def _continue(self, node: Node, fields: Mapping[str, object]) -> None:
        """Let a compaction follow what it compacts: its own parent is none."""
        node.parent = node.parent or text_in(fields, "logicalParentUuid") or self._last
        kept = kept_from(fields)
        if kept is not None:
            self.kept_from.add(kept)

    def finish(self) -> None:
        """Decide what the main line is, once all lines are known."""
        self.is_aside = bool(self.nodes) and all(n.is_aside for n in self.nodes.values())
        self._mend_parents()
        for node in self.nodes.values():
            if node.kind == "assistant":
                node.answer = self._answer_of(node)
                self.answers.setdefault(node.answer, []).append(node)
        self.main = {node.uuid for node in self._ancestors(self._leaf())}
        self._take_in_answers()

    def belongs(self, node: Node) -> bool:
        """Return whether a line is part of this conversation, and not of a subagent's in it."""
        return self.is_aside or not node.is_aside

    def _mend_parents(self) -> None:
        before: str | None = None
        for node in self.nodes.values():
            if not self.belongs(node):
                continue
            if node.parent is not None and node.parent not in self.nodes:
                if before is not None or node.is_compaction:
                    told = f"its parent {node.parent} is not in the file"
                    after = "taken to begin the session" if before is None else "taken to go on"
                    self.report.note(NoteKind.ASSUMED, node.number, f"{told}: {after}")
                node.parent = before
            before = node.uuid

    def _leaf(self) -> Node | None:
        leaves = (
            node
            for node in reversed(self.nodes.values())
            if node.kind in MESSAGES and self.belongs(node)
        )
        return next(leaves, None)

    def _ancestors(self, node: Node | None) -> Iterator[Node]:
        seen: set[str] = set()
        while node is not None and node.uuid not in seen:
            seen.add(node.uuid)
            yield node
            node = self.nodes.get(node.parent) if node.parent is not None else None
        if node is not None:
            self.report.note(NoteKind.ASSUMED, node.number, "its parents go round in a circle")

    def _answer_of(self, node: Node) -> str:
        """Return the answer a line is a block of: that of the line before it with the same id."""
        if node.message_id is None:
            return node.uuid
        before = self.nodes.get(node.parent) if node.parent is not None else None
        for _ in range(len(self.nodes)):
            if before is None or before.kind == "assistant" or is_question(before):
                break
            before = self.nodes.get(before.parent) if before.parent is not None else None
        if before is not None and before.message_id == node.message_id and before.answer:
            return before.answer
        siblings = self._siblings.setdefault((node.message_id, node.parent), node.uuid)
        return siblings

    def _take_in_answers(self) -> None:
        """Take onto the main line what only looks like a branch of it."""
        for blocks in self.answers.values():
            if any(node.uuid in self.main for node in blocks):
                self.main.update(node.uuid for node in blocks)
        answered = {i for uuid in self.main for i in self.nodes[uuid].result_ids}
        for node in self.nodes.values():
            if self._answers_main(node) and answered.isdisjoint(node.result_ids):
                self.main.add(node.uuid)
                answered.update(node.result_ids)

    def _answers_main(self, node: Node) -> bool:
        """Return whether a line holds results of calls on the main line and is not on it."""
        parent = self.nodes.get(node.parent) if node.parent is not None else None
        if not node.result_ids or node.uuid in self.main or parent is None:
            return False
        return parent.kind == "assistant" and parent.uuid in self.main


def is_question(node: Node) -> bool:
    """Return whether a line is the user's and no result of a tool."""
    return node.kind == "user" and not node.result_ids


def result_ids(content: object) -> Iterator[str]:
    """Yield the ids of the calls that a content answers."""
    for block in content if isinstance(content, list) else ():
        if isinstance(block, Mapping) and block.get("type") == "tool_result":
            call_id = block.get("tool_use_id")
            if isinstance(call_id, str):
                yield call_id


def kept_from(fields: Mapping[str, object]) -> str | None:
    """Return the uuid of the first message that a compaction leaves as it is, if it says one."""
    told = fields.get("compactMetadata")
    if not isinstance(told, Mapping):
        return None
    segment, messages = told.get("preservedSegment"), told.get("preservedMessages")
    if isinstance(messages, Mapping):
        uuids = messages.get("uuids")
        return next(iter(_texts(uuids)), None)
    return text_in(segment, "headUuid") if isinstance(segment, Mapping) else None


def _texts(values: object) -> Iterable[str]:
    return (v for v in values if isinstance(v, str)) if isinstance(values, list) else ()
