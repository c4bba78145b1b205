"""Runs a case of the ancestor whose log has live nodes: appends, closers and forks."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import grpc
from foldlog.v1 import event_pb2, message_pb2

from tests.contract import said
from tests.contract.calls import Calls, fresh_id
from tests.contract.recovering import recover, step_end, step_start
from tests.contract.refusal import refusal_of

TYPES = {
    "user_message": "user/message",
    "turn_start": "turn/start",
    "turn_end": "turn/end",
    "step_end": "step/end",
}
CODES = {"tool_not_started": "TOOL_NOT_STARTED", "tool_outcome_unknown": "TOOL_OUTCOME_UNKNOWN"}


@dataclass
class RecoveryRun:
    """One run of a case on one session."""

    log: Calls
    results: list[dict[str, Any]] = field(default_factory=list)

    def run(self, ops: list[dict[str, Any]]) -> None:
        """Run the ops in order; a failed one leaves the log as it was and the next goes on."""
        for op in ops:
            step: Callable[[dict[str, Any]], dict[str, Any]] = getattr(self, f"_{op['op']}")
            try:
                self.results.append(step(op))
            except grpc.RpcError as error:
                self.results.append({"refused": refusal_of(error).reason})

    def _append(self, op: dict[str, Any]) -> dict[str, Any]:
        new = _event(op["type"], op["data"])
        if isinstance(place := op.get("surfaceOp"), dict):
            said.replacing_entries(new, place["start"], place["end"])
            new.replace.trim = op["type"] == "tool/result"
        return {"ok": True, "seq": self.log.append(new).first_seq}

    def _closers(self, _op: dict[str, Any]) -> dict[str, Any]:
        """Tell what a recovery writes, from one of a fork."""
        fork = self.log.fork()
        answer = recover(fork)
        return {"closers": [_closer(each) for each in fork.events(answer.plan.next_seq)]}

    def _fork(self, op: dict[str, Any]) -> dict[str, Any]:
        boundary = None if op["boundary"] == "last" else op["boundary"]
        answer = self.log.fork_answer(boundary, fresh_id(), require_closed_turn=True)
        child = self.log.other(answer.session.session_id)
        names = [event_pb2.EventType.Name(each.type) for each in child.events()]
        fork = {
            "events": [TYPES[name.removeprefix("EVENT_TYPE_").lower()] for name in names],
            "header": {"seedLength": answer.session.parent.at_seq + 1},
            "first_live_seq": answer.next_seq,
        }
        return {"fork": fork}

    def final(self) -> dict[str, Any]:
        """Return the state after the last op."""
        return {
            "count": self.log.get().next_seq,
            "nodes": self.log.surface(),
            "derived": [_derived(each) for each in self.log.messages()],
        }


def _event(type_: str, data: dict[str, Any]) -> event_pb2.NewEvent:
    match type_:
        case "turn/start":
            return said.turn_start(data["turn"])
        case "turn/end":
            return said.turn_end(data["turn"])
        case "step/start":
            return step_start(data["step"])
        case "step/end":
            return step_end()
        case "user/message":
            return said.user(data["content"][0]["text"])
        case "assistant/message":
            return said.assistant(None, *(block["id"] for block in data["message"]["content"]))
        case "tool/result":
            (block,) = data["message"]["content"]
            return said.result(block["content"][0]["text"], block["toolCallId"])
    raise ValueError(type_)


def _closer(each: Any) -> dict[str, Any]:
    body, told = each.body, {"seq": each.seq}
    match body.WhichOneof("kind"):
        case "message":
            risk = json.loads(body.message.metadata_json)["risk"]
            about = {"callId": body.message.tool_call_id, "code": CODES[risk]}
            return told | {"type": "tool/result"} | about
        case "step_end":
            return told | {"type": "step/end", "step": body.step_end.number}
        case _:
            end = body.turn_end
            return told | {"type": "turn/end", "turn": end.number, "reason": end.reason}


def _derived(message: message_pb2.Message) -> dict[str, Any]:
    if message.tool_call_id:
        return {"role": "user", "text": f"result:{message.tool_call_id}:{message.text}"}
    if message.tool_calls:
        return {"role": "assistant", "text": f"call:{message.tool_calls[0].id}"}
    return {"role": "user", "text": message.text}
