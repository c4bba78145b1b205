"""Runs the cases that need a fault of the database, or of what is stored in it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import grpc
import psycopg
from foldlog.application.identity import DEFAULT_TENANT, aggregate_id
from foldlog.v1 import service_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.cases import forms
from tests.cases.field_driver import FieldRun
from tests.cases.racing_driver import RacingRun
from tests.contract.refusal import refusal_of
from tests.faults.databases import OTHERS, Database
from tests.faults.proxy import Loss, Proxy
from tests.postgres import owner_url

DAMAGE = """
    UPDATE foldlog_events SET state = substr(state, 1, length(state) / 2)
    WHERE originator_id = %s AND originator_version = %s
"""
IDLE = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = %s AND state = 'idle in transaction' AND state_change < now() - interval '1 s'
"""
ATTEMPTS = 60


@dataclass
class DatabaseRun(RacingRun):
    """A run on a database of its own. Streams that nobody reads stay open to its end."""

    database: Database = field(kw_only=True)
    proxy: Proxy = field(kw_only=True)
    streams: dict[str, Any] = field(default_factory=dict)

    def _configure(self, _op: dict[str, Any]) -> None:
        """Nothing: the case's server was started so."""

    def _sleep_ms(self, _op: dict[str, Any]) -> None:
        """Nothing: calls are tried again until the database is back."""

    def _create(self, op: dict[str, Any]) -> None:
        super()._create(op | {"session": forms.value(op["session"])})

    def _of(self, op: dict[str, Any]) -> Any:
        return super()._of(op | {"session": forms.value(op["session"])})

    def _append(self, op: dict[str, Any]) -> dict[str, Any]:
        """Append, again under the same request id as long as the database is away."""
        again = {"idempotency_key": uuid4().hex} | op
        return self._insisting(lambda: super(DatabaseRun, self)._append(again))

    def _insisting(self, call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        for _ in range(ATTEMPTS):
            try:
                return call()
            except grpc.RpcError as error:
                told = refusal_of(error)
                if told.retry is None:
                    raise
        raise TimeoutError(f"not within {ATTEMPTS} attempts")

    def _read_fold(self, op: dict[str, Any]) -> dict[str, Any]:
        return self._insisting(lambda: FieldRun._read_fold(self, op))

    def _read_events(self, op: dict[str, Any]) -> dict[str, Any]:
        return FieldRun._read_events(self, op)

    def _fault(self, op: dict[str, Any]) -> dict[str, Any]:
        match op["kind"]:
            case "terminate_all_connections":
                with psycopg.connect(self.database.server.url()) as connection:
                    connection.execute(OTHERS, [self.database.name])
            case "restart_db":
                self.database.server.crash(signal.SIGQUIT)
                self.database.server.start()
            case "corrupt_event":
                self._damage(op["session"], op["seq"])
            case "fail_during":
                self.proxy.lose(lambda: Loss.UNSENT)
                return self._step(op["call"]) or {}
            case "heal":
                self.proxy.lose(lambda: None)
        return {}

    def _damage(self, alias: str, seq: int) -> None:
        # A session's first row is the fact that it was created.
        row = aggregate_id(DEFAULT_TENANT, self._session_id(alias)), seq + 2
        with psycopg.connect(owner_url(self.database.url)) as connection:
            assert connection.execute(DAMAGE, row).rowcount == 1

    def _repeat(self, op: dict[str, Any]) -> None:
        for number in range(op["n"]):
            for inner in op["body"]:
                self._step(inner | {"as": f"{number}"})

    def _subscribe(self, op: dict[str, Any]) -> dict[str, Any]:
        watch = self._of(op).calls.watch(op["from_seq"])
        # Its headers are there once the server takes it.
        watch.initial_metadata()
        self.streams[op["as"]] = watch
        return {}

    def _expect_stream(self, op: dict[str, Any]) -> dict[str, Any]:
        seqs: list[int] = []
        while not seqs or seqs[-1] < op["until_seq"]:
            item = next(self.streams[op["sub"]])
            if item.HasField("event"):
                seqs.append(item.event.seq)
        return {"seqs": seqs}

    def _client(self, number: int, body: list[dict[str, Any]]) -> None:
        if body[0]["op"] != "export":
            super()._client(number, body)
            return
        request = service_pb2.ExportSessionRequest(session_id=self._of(body[0]).calls.session_id)
        self.streams[f"export {number}"] = self.served.stub.ExportSession(request)

    def _db_sessions_idle_in_transaction(self, _op: dict[str, Any]) -> dict[str, Any]:
        with psycopg.connect(self.database.server.url()) as connection:
            row = connection.execute(IDLE, [self.database.name]).fetchone()
        assert row is not None
        return {"count": row[0]}

    def _health(self, _op: dict[str, Any]) -> dict[str, Any]:
        health = health_pb2_grpc.HealthStub(self.served.channel)
        status = health.Check(health_pb2.HealthCheckRequest(), timeout=60).status
        return {"status": health_pb2.HealthCheckResponse.ServingStatus.Name(status)}

    def end_streams(self) -> None:
        """End what nobody reads."""
        for stream in self.streams.values():
            stream.cancel()
