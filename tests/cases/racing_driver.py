"""Runs the cases in which calls race with one another, are repeated, or are cut off by a kill."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any

import grpc
from foldlog.v1 import event_pb2

from tests.cases import forms
from tests.cases.field_driver import FieldRun, Written
from tests.contract.refusal import refusal_of

ROUNDS_WITH_A_KILL = 4
Batch = list[event_pb2.NewEvent]


@dataclass
class RacingRun(FieldRun):
    """A run of a field case. Tells what each branch came to, and texts where it tells seqs.

    `unanswered` are batches that a kill cut off: each may be there whole, or not at all.
    """

    unanswered: list[Batch] = field(default_factory=list)
    pause: random.Random = field(default_factory=lambda: random.Random(1))

    def _concurrent(self, op: dict[str, Any]) -> dict[str, Any]:
        return self._raced([partial(self._branch, steps) for steps in op["branches"]])

    def _branch(self, steps: list[dict[str, Any]]) -> None:
        for step in steps:
            self._step(step)

    def _concurrent_clients(self, op: dict[str, Any]) -> dict[str, Any]:
        return self._raced([partial(self._client, n, op["body"]) for n in range(op["n"])])

    def _client(self, number: int, body: list[dict[str, Any]]) -> None:
        """Append one by one: what a client sends later is to stand later."""
        seqs: list[int] = []
        for repeat in body:
            for index in range(repeat["n"]):
                for inner in repeat["body"]:
                    text = f"{number:02}-{index:02}"
                    new = forms.new_event(inner | {"data": {"content": text}})
                    seqs.append(self._appended(self._of(inner), [new]))
        assert seqs == sorted(seqs)

    def _raced(self, runs: list[Callable[[], None]]) -> dict[str, Any]:
        with ThreadPoolExecutor(len(runs)) as pool:
            futures = [pool.submit(run) for run in runs]
        outcomes: list[str] = []
        heads: list[str] = []
        for future in futures:
            error = future.exception()
            if error is None:
                outcomes.append("done")
            elif isinstance(error, grpc.RpcError):
                told = refusal_of(error)
                outcomes.append(told.reason)
                heads += [told.facts["next_seq"]] if "next_seq" in told.facts else []
            else:
                raise error
        return {"outcomes": sorted(outcomes), "heads": heads}

    def _repeat(self, op: dict[str, Any]) -> None:
        """Repeat a body that ends in a kill a few times only: each costs a start."""
        for _ in range(min(op["n"], ROUNDS_WITH_A_KILL)):
            self._branch(op["body"])

    def _sleep_random_ms(self, op: dict[str, Any]) -> None:
        if self.restart is not None:
            time.sleep(self.pause.uniform(0, op["max"]) / 1_000)

    def _append(self, op: dict[str, Any]) -> dict[str, Any]:
        new = forms.new_event(op)
        return {"seq": self._appended(self._of(op), [new], op.get("idempotency_key", ""))}

    def _replace(self, op: dict[str, Any]) -> dict[str, Any]:
        first_seq, last_seq = op["range"]
        new = forms.new_event(op)
        entries = event_pb2.EntryRange(first_seq=first_seq, last_seq=last_seq)
        new.replace.entries.CopyFrom(entries)
        return {"seq": self._appended(self._of(op), [new], op.get("idempotency_key", ""))}

    def _append_batch(self, op: dict[str, Any]) -> None:
        batch = [forms.new_event(each) for each in op["events"]]
        fields = {key: op[key] for key in ("expected_next_seq",) if key in op}
        try:
            self._appended(self._of(op), batch, **fields)
        except grpc.RpcError as error:
            if refusal_of(error).code is not grpc.StatusCode.UNAVAILABLE:
                raise
            self.unanswered.append(batch)

    def _appended(self, written: Written, batch: Batch, request_id: str = "", **fields: Any) -> int:
        answer = written.calls.append(*batch, request_id=request_id, **fields)
        written.events |= dict(enumerate(batch, answer.first_seq))
        return int(answer.first_seq)

    def _read_fold(self, op: dict[str, Any]) -> dict[str, Any]:
        if op["session"] not in self.sessions:
            return {"absent": True}
        told = super()._read_fold(op)
        texts = [each.message.text for each in self._of(op).calls.fold()]
        return told | {"texts": texts, "count": len(texts)}

    def _read_events(self, op: dict[str, Any]) -> dict[str, Any]:
        if op["session"] not in self.sessions:
            return {"absent": True}
        self._learn_fates(self._of(op))
        return super()._read_events(op)

    def _learn_fates(self, written: Written) -> None:
        """Take in whole batches that nobody was told of. A part of one is wrong."""
        unknown = [each for each in written.calls.events() if each.seq not in written.events]
        for _, run in groupby(enumerate(unknown), lambda pair: pair[1].seq - pair[0]):
            left = [each for _, each in run]
            while left:
                batch = self.unanswered.pop(0)
                found, left = left[: len(batch)], left[len(batch) :]
                assert [each.body for each in found] == [new.body for new in batch]
                written.events |= {each.seq: new for each, new in zip(found, batch, strict=True)}
