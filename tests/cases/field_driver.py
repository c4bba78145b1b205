"""Runs a field case through the API. Whatever was appended is to come back as it was sent."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc
from foldlog.v1 import event_pb2, service_pb2

from tests.cases import exports, forms
from tests.contract.abandoned import abandon, abandon_answer
from tests.contract.calls import Calls, fresh_id, imported, raw_call
from tests.contract.refusal import refusal_of
from tests.contract.said import batches
from tests.served import Served

# An encoded text cannot hold a lone surrogate; what a careless encoder sends instead.
_HALF_MARK = "\x01\x02half"


@dataclass
class Written:
    """A session, and what was written to it, by seq."""

    calls: Calls
    events: dict[int, event_pb2.NewEvent] = field(default_factory=dict)

    def twin(self, calls: Calls, last_seq: int | None = None) -> Written:
        """Return what a fork or a copy holds."""
        kept = {s: e for s, e in self.events.items() if last_seq is None or s <= last_seq}
        return Written(calls, kept)


@dataclass
class FieldRun:
    """One run of a case. `restart` ends and starts the server; None where nothing would survive."""

    served: Served
    restart: Callable[[str], object] | None
    set_clock: Callable[[int], object]
    run_id: str = field(default_factory=lambda: fresh_id("case"))
    sessions: dict[str, Written] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    results: dict[int, dict[str, Any]] = field(default_factory=dict)

    @property
    def _labels(self) -> dict[str, str]:
        return {"case": self.run_id}

    def run(self, ops: list[dict[str, Any]]) -> None:
        """Run the ops in order and keep what each gave."""
        for index, op in enumerate(ops):
            self.results[index] = self._outcome(op)

    def _outcome(self, op: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._step(op) or {"ok": True}
        except grpc.RpcError as error:
            told = refusal_of(error)
            fields = sorted(told.fields or {})
            code = told.code.name
            return {"refused": told.reason, "code": code, "fields": fields, "facts": told.facts}

    def _step(self, op: dict[str, Any]) -> dict[str, Any] | None:
        step: Callable[[dict[str, Any]], dict[str, Any] | None] = getattr(self, f"_{op['op']}")
        return step(op)

    def _session_id(self, alias: str) -> str:
        return f"{alias}-{self.run_id}"

    def _of(self, op: dict[str, Any]) -> Written:
        return self.sessions[op["session"]]

    def _create(self, op: dict[str, Any]) -> None:
        alias = op["session"]
        calls = Calls.create(self.served.stub, self._session_id(alias), labels=self._labels)
        assert calls.session_id == self._session_id(alias)
        self.sessions[alias] = Written(calls)

    def _append(self, op: dict[str, Any]) -> dict[str, Any] | None:
        try:
            self._append_all(self._of(op), [forms.new_event(op)], op.get("idempotency_key", ""))
        except UnicodeEncodeError:
            self._append_half_character(op)
        return None

    def _append_half_character(self, op: dict[str, Any]) -> None:
        text = forms.value(op["data"]["content"])
        marked = op | {"data": op["data"] | {"content": _HALF_MARK * len(text)}}
        request = self._of(op).calls.append_request(forms.new_event(marked)).SerializeToString()
        spoilt = text.encode("utf-8", "surrogatepass").ljust(len(_HALF_MARK) * len(text))
        sent = request.replace(marked["data"]["content"].encode(), spoilt)
        raw_call(self.served.channel, "AppendEvents")(sent)

    def _append_all(
        self, written: Written, events: list[event_pb2.NewEvent], request_id: str = ""
    ) -> None:
        for batch in batches(events):
            first_seq = written.calls.append(*batch, request_id=request_id).first_seq
            written.events |= dict(enumerate(batch, first_seq))

    def _replace(self, op: dict[str, Any]) -> dict[str, Any] | None:
        first_seq, last_seq = op["range"]
        new = forms.new_event(op)
        entries = event_pb2.EntryRange(first_seq=first_seq, last_seq=last_seq)
        new.replace.entries.CopyFrom(entries)
        self._append_all(self._of(op), [new])
        return None

    def _replace_visible(self, op: dict[str, Any]) -> None:
        live = self._of(op).calls.surface()
        self._replace(op | {"range": [live[0], live[-1]]})

    def _append_raw_size(self, op: dict[str, Any]) -> None:
        self._append(op | {"type": "user_message", "data": {"content": "x" * op["bytes"]}})

    def _count_attempts(self, _op: dict[str, Any]) -> None:
        """One: gRPC's defaults retry no call that the server answered."""

    def _repeat(self, op: dict[str, Any]) -> None:
        """Repeat the body; appends that follow one another go in batches."""
        waiting: list[tuple[Written, event_pb2.NewEvent]] = []
        for index in range(op["n"]):
            for inner in _bound(op["body"], index):
                if inner["op"] == "append":
                    waiting.append((self._of(inner), forms.new_event(inner)))
                    continue
                self._flush(waiting)
                self._step(inner)
        self._flush(waiting)

    def _flush(self, waiting: list[tuple[Written, event_pb2.NewEvent]]) -> None:
        if waiting:
            self._append_all(waiting[0][0], [new for _, new in waiting])
            waiting.clear()

    def _concurrent(self, op: dict[str, Any]) -> dict[str, Any] | None:
        failures: list[BaseException] = []

        def branch(steps: list[dict[str, Any]]) -> None:
            try:
                for step in steps:
                    self._step(step)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=branch, args=(steps,)) for steps in op["branches"]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        return None

    def _read_fold(self, op: dict[str, Any]) -> dict[str, Any]:
        written = self._of(op)
        folded = written.calls.fold()
        for each in folded:
            assert each.message == written.events[each.seq].body.message, each.seq
            self._assert_time(each, written)
        return {"surface": [each.seq for each in folded]}

    def _read_events(self, op: dict[str, Any]) -> dict[str, Any]:
        return self._events(op, page_size=0)

    def _read_events_paged(self, op: dict[str, Any]) -> dict[str, Any]:
        return self._events(op, page_size=op["page_size"])

    def _events(self, op: dict[str, Any], page_size: int) -> dict[str, Any]:
        written = self._of(op)
        before = {seq for seq in written.events if seq >= op.get("from_seq", 0)}
        events = written.calls.events(op.get("from_seq", 0), page_size=page_size)
        seqs = [each.seq for each in events]
        assert seqs == sorted(set(seqs))
        assert before <= set(seqs)
        for each in events:
            self._assert_echo(each, written)
        return {"seqs": seqs, "held": [each.seq for each in events if not each.dropped]}

    def _assert_echo(self, each: Any, written: Written) -> None:
        if each.dropped:
            assert not each.HasField("body")
        elif each.type != event_pb2.EVENT_TYPE_REWIND and each.seq in written.events:
            assert each.body == written.events[each.seq].body, each.seq
            self._assert_time(each, written)

    @staticmethod
    def _assert_time(each: Any, written: Written) -> None:
        sent = written.events[each.seq]
        if sent.HasField("time"):
            assert each.time == sent.time, each.seq

    def _read_header(self, op: dict[str, Any]) -> None:
        written = self._of(op)
        headers = [e.body.request_header for e in written.events.values()]
        sent = [each for each in headers if each.ByteSize()]
        assert written.calls.header_answer().header == sent[-1]

    def _check_request(self, op: dict[str, Any]) -> dict[str, Any]:
        request = self._request(op["messages"])
        answer = self._of(op).calls.check(*request)
        assert answer.checked
        if not answer.HasField("violation"):
            return {"result": "ok"}
        return {"result": "violation"} | forms.violation(answer.violation)

    def _request(self, messages: Any) -> list[Any]:
        match messages:
            case {"$fold_of": alias}:
                return self.sessions[alias].calls.messages()
        return [forms.request_message(each) for each in messages]

    def _fork(self, op: dict[str, Any]) -> None:
        parent = self._of(op)
        child = parent.calls.fork(op["at_seq"], self._session_id(op["as"]), labels=self._labels)
        self.sessions[op["as"]] = parent.twin(child, op["at_seq"])

    def _rewind(self, op: dict[str, Any]) -> None:
        self._of(op).calls.rewind(op["to_seq"])

    def _snapshot(self, op: dict[str, Any]) -> dict[str, Any]:
        return {"dropped": self._of(op).calls.snapshot().dropped_count}

    def _list_sessions(self, op: dict[str, Any]) -> dict[str, Any]:
        listed = list(self._listed(op.get("page_size", 0)))
        assert len(listed) == len(set(listed))
        assert set(listed) == {each.calls.session_id for each in self.sessions.values()}
        return {"count": len(listed)}

    def _listed(self, page_size: int) -> Iterator[str]:
        request = service_pb2.ListSessionsRequest(labels=self._labels, page_size=page_size)
        while True:
            page = self.served.stub.ListSessions(request)
            yield from (each.session_id for each in page.sessions)
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def _export(self, op: dict[str, Any]) -> None:
        self.files[op["as"]] = self._of(op).calls.export()
        self.sessions[f"file {op['as']}"] = self._of(op).twin(self._of(op).calls)

    def _import(self, op: dict[str, Any]) -> None:
        alias = op.get("as_session")
        source = self.sessions[f"file {op['file']}"]
        data = self.files[op["file"]]
        session_id = self._session_id(alias) if alias else ""
        answer = imported(self.served.stub, data, session_id, op.get("write_sizes", (65_536,)))
        copy = source.calls.other(answer.session.session_id)
        self.sessions[alias or op["file"]] = source.twin(copy)
        again = copy.export()
        assert exports.renamed(again, source.calls.session_id) == data

    def _edit_export(self, op: dict[str, Any]) -> None:
        self.files[op["as"]] = exports.edited(self.files[op["file"]], **op["edit"])
        self.sessions[f"file {op['as']}"] = self.sessions[f"file {op['file']}"]

    def _import_all(self, op: dict[str, Any]) -> dict[str, Any]:
        report = {}
        for name in op["files"]:
            self._fixture(name)
            report[name] = self._outcome({"op": "import", "file": name, "as_session": name})
        return {name: told.get("refused", "imported") for name, told in report.items()}

    def _fixture(self, name: str) -> None:
        if name not in self.files:
            calls = Calls.create(self.served.stub, labels=self._labels)
            written = Written(calls)
            self._append_all(written, [forms.new_event(_LEGACY_EVENT)])
            self.files[name] = calls.export()
            self.sessions[f"file {name}"] = written
            self.sessions[f"origin of {name}"] = written

    def _restart_server(self, op: dict[str, Any]) -> None:
        if self.restart is not None:
            self.restart(op["mode"])

    def _set_clock(self, op: dict[str, Any]) -> None:
        self.set_clock(op["offset_ms"])

    def _kill_client_mid_call(self, op: dict[str, Any]) -> None:
        match op["call"]:
            case {"op": "import_all", "files": files}:
                self._import_all({"files": files[: int(op["at"].rpartition("_")[2])]})
            case {"op": "import", "file": name, "as_session": alias}:
                self._import_halfway(self.files[name], self._session_id(alias))
            case {"op": "replace"}:
                abandon(self.served.address, "AppendEvents", [])
            case {"op": "append"} as append:
                request = self._of(append).calls.append_request(
                    forms.new_event(append), request_id=append["idempotency_key"]
                )
                abandon_answer(self.served.address, "AppendEvents", request.SerializeToString())

    def _import_halfway(self, data: bytes, session_id: str) -> None:
        head = service_pb2.ImportHeader(session_id=session_id)
        elements = [
            service_pb2.ImportSessionRequest(header=head),
            service_pb2.ImportSessionRequest(data=data[: len(data) // 2]),
        ]
        abandon(
            self.served.address, "ImportSession", [each.SerializeToString() for each in elements]
        )

    def _subscribe(self, op: dict[str, Any]) -> dict[str, Any]:
        written = self._of(op)
        seqs = []
        call = written.calls.watch(op["from_seq"])
        for each in call:
            if each.HasField("caught_up"):
                break
            self._assert_echo(each.event, written)
            seqs.append(each.event.seq)
        call.cancel()
        return {"seqs": seqs}

    def _stored_bytes(self, op: dict[str, Any]) -> dict[str, Any]:
        return {"bytes": sum(each.ByteSize() for each in self._of(op).calls.events())}

    def _fault(self, _op: dict[str, Any]) -> dict[str, Any]:
        return {"not_run": True}

    def surfaces(self) -> dict[str, list[int]]:
        """Return the surface of each session by its alias."""
        return {alias: each.calls.surface() for alias, each in self._named()}

    def next_seqs(self) -> dict[str, int]:
        """Return the next_seq of each session by its alias."""
        return {alias: each.calls.get().next_seq for alias, each in self._named()}

    def _named(self) -> Iterator[tuple[str, Written]]:
        return ((alias, each) for alias, each in self.sessions.items() if " " not in alias)


_LEGACY_EVENT: dict[str, Any] = {
    "op": "append",
    "type": "user_message",
    "data": {"content": "from an older file"},
}


def _bound(body: list[dict[str, Any]], index: int) -> Iterator[dict[str, Any]]:
    """Yield the ops of a body with `$var` bound to the round's number."""
    for op in body:
        bound = dict(op)
        if isinstance(op.get("session"), Mapping):
            bound["session"] = f"S-{index}"
        if op.get("data") == {"content": {"$var": "i"}}:
            bound["data"] = {"content": str(index)}
        yield bound
