"""Runs a seed case through the API and gathers what came of it in the cases' own notation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc
from foldlog.v1 import check_pb2, event_pb2

from tests.cases import forms
from tests.contract import recovering
from tests.contract.calls import Calls, fresh_id, raw_call
from tests.contract.refusal import Refusal, refusal_of

CHECK_MODES = {
    "warn": check_pb2.CHECK_MODE_WARN,
    "strict": check_pb2.CHECK_MODE_STRICT,
    "off": check_pb2.CHECK_MODE_OFF,
    "unset": check_pb2.CHECK_MODE_UNSPECIFIED,
}
UNKNOWN_MODE = 77


@dataclass
class SeedRun:
    """One run of a case on one session. `options` are those of a deviation's variant."""

    log: Calls
    channel: grpc.Channel
    options: Mapping[str, Any] = field(default_factory=dict)
    results: list[dict[str, Any]] = field(default_factory=list)

    def run(self, ops: list[dict[str, Any]]) -> None:
        """Run the ops in order; a failed one leaves the log as it was and the next goes on."""
        for op in ops:
            self.results.append(self._outcome(op))

    def _outcome(self, op: dict[str, Any]) -> dict[str, Any]:
        step: Callable[[dict[str, Any]], dict[str, Any]] = getattr(self, f"_{op['op']}")
        try:
            return step(op)
        except grpc.RpcError as error:
            return _refused(refusal_of(error))
        except forms.UnrepresentableError:
            return {"unrepresentable": True}

    def _append(self, op: dict[str, Any]) -> dict[str, Any]:
        new = self._addressed(_invalid_text(op) or forms.new_event(op))
        if (content := _bytes_content(op)) is not None:
            return self._append_bytes(new, content)
        answer = self.log.append(new, **self._picked("require_balanced"))
        return {"ok": True} | _unpaired(answer)

    def _append_bytes(self, new: event_pb2.NewEvent, content: bytes) -> dict[str, Any]:
        request = self.log.append_request(new).SerializeToString()
        raw_call(self.channel, "AppendEvents")(request.replace(_MARK, content))
        return {"ok": True}

    def _addressed(self, new: event_pb2.NewEvent) -> event_pb2.NewEvent:
        if new.HasField("replace"):
            new.replace.allow_empty = self.options.get("allow_empty", False)
            if self.options.get("addressing") == "entries":
                start, stop = new.replace.positions.start, new.replace.positions.stop
                new.replace.entries.CopyFrom(event_pb2.EntryRange(first_seq=start, last_seq=stop))
        return new

    def _picked(self, *names: str) -> dict[str, Any]:
        return {name: self.options[name] for name in names if name in self.options}

    def _append_at(self, op: dict[str, Any]) -> dict[str, Any]:
        self.log.restore(event_pb2.Event(seq=op["seq"], body=forms.body(op["type"], op["data"])))
        return {"ok": True}

    def _since(self, op: dict[str, Any]) -> dict[str, Any]:
        return {"since": [each.seq for each in self.log.events(op["seq"]) if not each.dropped]}

    def _seed(self, op: dict[str, Any]) -> dict[str, Any]:
        self.log.seed(*(forms.request_message(each) for each in op["messages"]))
        return {"ok": True}

    def _check(self, op: dict[str, Any]) -> dict[str, Any]:
        options = check_pb2.CheckOptions(**self.options.get("check", {}))
        request = [forms.request_message(each) for each in op["request"]]
        answer = self.log.check(*request, options=options)
        assert answer.checked
        if answer.HasField("violation"):
            return {"violation": forms.violation(answer.violation)}
        return {"check": "ok"}

    def _verify(self, op: dict[str, Any]) -> dict[str, Any]:
        mode = op["mode"]["$string"] if isinstance(op["mode"], dict) else op["mode"]
        request = [forms.request_message(each) for each in op["request"]]
        answer = self.log.check(*request, mode=CHECK_MODES.get(mode, UNKNOWN_MODE))
        assert answer.checked == (mode != "off")
        found = answer.HasField("violation")
        return {"violation": forms.violation(answer.violation)} if found else {"check": "ok"}

    def _snapshot(self, _op: dict[str, Any]) -> dict[str, Any]:
        self.log.snapshot()
        return {"ok": True}

    def _materialize(self, _op: dict[str, Any]) -> dict[str, Any]:
        self.log.fold()
        return {"ok": True}

    def _rebuild(self, _op: dict[str, Any]) -> dict[str, Any]:
        survivors = [each for each in self.log.events() if not each.dropped]
        self.log = Calls.create(self.log.stub)
        self.log.restore(*survivors)
        return {"ok": True}

    def _fork(self, op: dict[str, Any]) -> dict[str, Any]:
        boundary = None if op["boundary"] == "last" else op["boundary"]
        answer = self.log.fork_answer(boundary, fresh_id(), **self._picked("require_closed_turn"))
        child = self.log.other(answer.session.session_id)
        fold = [forms.folded(each) for each in child.fold()]
        fork = {
            "count": answer.next_seq,
            "fold": [{k: v for k, v in each.items() if k != "seq"} for each in fold],
            "parent": {"seed_length": answer.session.parent.at_seq + 1, "session_id": "parent"},
            "seqs": [each.seq for each in child.events()],
        }
        assert answer.session.parent.session_id == self.log.session_id
        if answer.cut.HasField("open_turn_seq"):
            fork["open_turn_seq"] = answer.cut.open_turn_seq
        return {"fork": fork}

    def _recovery_plan(self, _op: dict[str, Any]) -> dict[str, Any]:
        """Tell what a recovery would write, from one of a fork."""
        told = recovering.plan(self.log)
        fork = self.log.fork()
        answer = recovering.recover(fork)
        written = [forms.closing(each) for each in fork.events(answer.plan.next_seq)]
        fork.delete()
        assert len(told.owed_calls) == sum(each["type"] == "tool_result" for each in written)
        return {"interrupted": told.interrupted, "plan": written}

    def _recover(self, _op: dict[str, Any]) -> dict[str, Any]:
        epoch = recovering.recover(self.log).writer_epoch
        self.log.close_writer(epoch)
        return {"ok": True}

    def final(self) -> dict[str, Any]:
        """Return the state after the last op."""
        folded = self.log.fold()
        held = [each for each in self.log.events() if not each.dropped]
        return {
            "count": self.log.get().next_seq,
            "fold": [forms.folded(each) for each in folded],
            "surface_seqs": [each.seq for each in folded],
            "created_at": [
                each.time.ToDatetime().strftime("%Y-%m-%dT%H:%M:%S.%fZ") for each in folded
            ],
            "seqs": [each.seq for each in held],
            "types": [
                event_pb2.EventType.Name(each.type).removeprefix("EVENT_TYPE_").lower()
                for each in held
            ],
        }


_MARK = b"\x01MARK"


def _bytes_content(op: dict[str, Any]) -> bytes | None:
    content = op["data"].get("content") if isinstance(op["data"], dict) else None
    if isinstance(content, dict) and "$bytes_hex" in content:
        raw = bytes.fromhex(content["$bytes_hex"])
        return raw.ljust(len(_MARK), b"\xff")
    return None


def _invalid_text(op: dict[str, Any]) -> event_pb2.NewEvent | None:
    if _bytes_content(op) is None:
        return None
    return forms.new_event(op | {"data": {"content": _MARK.decode()}})


def _unpaired(answer: Any) -> dict[str, Any]:
    orphaned = [i for each in answer.replaces for i in each.orphaned_result_ids]
    unanswered = [i for each in answer.replaces for i in each.unanswered_call_ids]
    told = {"orphaned_result_ids": orphaned, "unanswered_call_ids": unanswered}
    return {name: ids for name, ids in told.items() if ids}


def _refused(refusal: Refusal) -> dict[str, Any]:
    told: dict[str, Any] = {"refused": refusal.reason, "facts": refusal.facts}
    told["fields"] = sorted(refusal.fields or {})
    if refusal.violation is not None:
        told["violation"] = forms.violation(refusal.violation)
    return told
