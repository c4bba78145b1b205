"""Runs the cases in which watches stay open while others write, and while faults come."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import grpc
import psycopg

from tests.cases import forms
from tests.cases.racing_driver import RacingRun
from tests.contract.calls import Calls, fresh_id
from tests.contract.refusal import refusal_of

DEADLINE_S = 60.0
# A hint's connection that is gone; and all of them, as a restart of the database leaves them.
CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
VICTIMS = {
    "listen_conn": " AND pid <> pg_backend_pid() AND query ILIKE 'listen%'",
    "db": " AND pid <> pg_backend_pid()",
}


@dataclass
class OpenWatch:
    """A watch that is open, and how far it got."""

    calls: Calls
    next_seq: int
    gone: list[int] = field(default_factory=list)
    call: Any = None

    def open(self) -> None:
        """Begin, or begin again where it was."""
        self.call = self.calls.watch(self.next_seq)

    def until(self, is_last: Callable[[int], bool]) -> list[int]:
        """Return the seqs that come, up to the last one wanted. Each is to be the next."""
        seqs: list[int] = []
        while not seqs or not is_last(seqs[-1]):
            answer = self._next()
            if answer.WhichOneof("kind") != "event":
                continue
            assert answer.event.seq == self.next_seq
            self.next_seq += 1
            if answer.event.dropped:
                self.gone.append(answer.event.seq)
            else:
                seqs.append(answer.event.seq)
        return seqs

    def _next(self) -> Any:
        """Return what comes next; a watch that the store's fault ended goes on where it was."""
        while True:
            try:
                return next(self.call)
            except grpc.RpcError as error:
                if refusal_of(error).reason != "STORE_UNAVAILABLE":
                    raise
                self.open()

    def ended(self) -> grpc.StatusCode:
        """Read on to the end and return how it ended."""
        try:
            for _ in self.call:
                pass
        except grpc.RpcError as error:
            return refusal_of(error).code
        return grpc.StatusCode.OK


@dataclass
class WatchingRun(RacingRun):
    """A run of a field case whose watches are open until they are cancelled."""

    watches: dict[str, OpenWatch] = field(default_factory=dict)

    def _repeat(self, op: dict[str, Any]) -> None:
        for _ in range(op["n"]):
            self._branch(op["body"])

    def _subscribe(self, op: dict[str, Any]) -> dict[str, Any]:
        watch = self.watches[op["as"]] = OpenWatch(self._of(op).calls, op["from_seq"])
        watch.open()
        return {"ok": True}

    def _expect_stream(self, op: dict[str, Any]) -> dict[str, Any]:
        watch = self.watches[op["sub"]]
        if "until" in op:
            last = watch.calls.get().next_seq - 1
        else:
            last = op["seqs"][-1] if "seqs" in op else op["until_seq"]
        return {"seqs": watch.until(lambda seq: seq >= last), "gone": watch.gone}

    def _cancel(self, op: dict[str, Any]) -> None:
        self.watches.pop(op["sub"]).call.cancel()

    def _restart_server(self, op: dict[str, Any]) -> None:
        super()._restart_server(op)
        if self.restart is not None:
            ends = {watch.ended() for watch in self.watches.values()}
            assert ends <= {grpc.StatusCode.UNAVAILABLE}

    def _append(self, op: dict[str, Any]) -> dict[str, Any]:
        request_id = op.get("idempotency_key", "") or fresh_id() if "retry" in op else ""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            try:
                new = forms.new_event(op)
                return {"seq": self._appended(self._of(op), [new], request_id)}
            except grpc.RpcError as error:
                is_away = refusal_of(error).code is grpc.StatusCode.UNAVAILABLE
                if not (request_id and is_away and time.monotonic() < deadline):
                    raise

    def _fault(self, op: dict[str, Any]) -> dict[str, Any]:
        if not self.served.database_url.startswith("postgresql"):
            return {"not_run": True}
        with psycopg.connect(self.served.database_url) as connection:
            connection.execute(CUT + VICTIMS[op["target"]])
        return {"ok": True}
