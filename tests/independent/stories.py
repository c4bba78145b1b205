"""Random sessions with steps, compactions, rewinds, forks, other headers, and their requests."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import grpc
from foldlog.v1 import event_pb2, message_pb2

from tests.contract.calls import Calls
from tests.contract.refusal import refusal_of
from tests.contract.requesting import (
    HEADER,
    Request,
    begin,
    rebuilt,
    record,
    record_header,
    sent_of,
)
from tests.contract.said import (
    assistant,
    bookkeeping,
    event,
    header,
    message,
    replacing,
    result,
    system,
    user,
)

TEXTS = ("", "hi", "Zo\u00eb", "Zoe\u0308", "a\u0000b", "\U0001f469\u200d\U0001f680", '{"a": 1.0}')
HEADERS = (
    HEADER,
    event_pb2.RequestHeader(model="m", parameters_json='{"t": 1, "a": [1.0, 1e0]}'),
    event_pb2.RequestHeader(model="m", parameters_json='{"a":[1.0,1e0],"t":1}'),
    event_pb2.RequestHeader(model="m", tools_json=['{"n": "f"}', '{"n": "g"}']),
    event_pb2.RequestHeader(model="m", tools_json=['{"n": "g"}', '{"n": "f"}']),
    event_pb2.RequestHeader(provider="q", system_prompt="S\u0000", reasoning_effort="low"),
)
# What a random op may run into.
EXPECTED = {"ENTRY_NOT_LIVE", "EMPTY_RANGE", "INVALID_FIELD", "HEADER_MISSING"}


@dataclass
class Branch:
    """One session of a story, and each step's request as it was when the step began."""

    log: Calls
    steps: dict[int, Request] = field(default_factory=dict)


class Story:
    """A family of sessions that grows by random ops."""

    def __init__(self, log: Calls, seed: int) -> None:
        self.branches = [Branch(log)]
        self._chance = random.Random(seed)
        record_header(log)

    def grow(self, ops: int) -> None:
        """Do so many random ops."""
        for _ in range(ops):
            branch = self._chance.choice(self.branches)
            try:
                self._op(branch)
            except grpc.RpcError as error:
                if refusal_of(error).reason not in EXPECTED:
                    raise

    def _op(self, branch: Branch) -> None:
        log, chance = branch.log, self._chance
        next_seq = log.get().next_seq
        match chance.choices(
            ["begin", "append", "step", "replace", "rewind", "header", "fork"],
            [8, 4, 2, 4, 2, 2, 1],
        )[0]:
            case "begin":
                self._begin(branch)
            case "append":
                log.append(*self._events())
            case "step":
                events = [bookkeeping(step_start=event_pb2.StepStart()), *self._events()]
                seq = log.append(*events).first_seq
                branch.steps[seq] = rebuilt(log, step_seq=seq)
            case "replace":
                start = chance.randrange(next_seq)
                stop = min(start + chance.randrange(6), next_seq - 1)
                log.append(replacing(system(chance.choice(TEXTS)), start, stop))
            case "rewind":
                log.rewind(chance.randrange(max(0, next_seq - 12), next_seq))
            case "header":
                record_header(log, chance.choice(HEADERS))
            case "fork" if len(self.branches) < 4:
                self._fork(branch, chance.randrange(next_seq))

    def _begin(self, branch: Branch) -> None:
        chance = self._chance
        given = {"header": chance.choice(HEADERS)} if chance.random() < 0.3 else {}
        begun = begin(branch.log, *self._events(), **given)
        branch.steps[begun.step.step_seq] = begun.request
        if chance.random() < 0.6:
            record(branch.log, sent_of(begun.request))

    def _fork(self, branch: Branch, at_seq: int) -> None:
        kept = {
            seq: request
            for seq, request in branch.steps.items()
            if request.about.built_at_next_seq <= at_seq + 1
        }
        self.branches.append(Branch(branch.log.fork(at_seq), kept))

    def _events(self) -> list[event_pb2.NewEvent]:
        return [self._event() for _ in range(self._chance.randrange(4))] or [user("x")]

    def _event(self) -> event_pb2.NewEvent:
        chance = self._chance
        text = chance.choice(TEXTS)
        match chance.randrange(8):
            case 0:
                return assistant(None, "c1", "c2", reasoning=chance.choice(TEXTS))
            case 1:
                return result(text, "c1", name="f")
            case 2:
                return event(_with_parts(text))
            case 3:
                grouped = user(text, metadata_json='{"k": "v"}')
                grouped.body.group = "g"
                return grouped
            case 4:
                return header(model=text)
            case 5:
                return event(message("user", name=""))
        return user(text)

    def told(self) -> Iterator[tuple[Calls, int, Request]]:
        """Yield each step of each session with its request as it was built at its time."""
        for branch in self.branches:
            for seq, request in branch.steps.items():
                yield branch.log, seq, request


def _with_parts(text: str) -> message_pb2.Message:
    parts = [
        message_pb2.Part(text=text),
        message_pb2.Part(tool_call_index=0),
        message_pb2.Part(reasoning=message_pb2.Reasoning(text=text)),
        message_pb2.Part(reasoning=message_pb2.Reasoning(json='{"sig": 1.0}')),
        message_pb2.Part(opaque=message_pb2.OpaquePart(kind="k", json='{ "a":1 }')),
    ]
    said = message("assistant", tool_calls=[message_pb2.ToolCall(id="c", arguments="{")])
    said.parts.parts.extend(parts)
    return said
