"""Runs the cases that tell of attachments, on a server whose attachments are files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from foldlog.v1 import service_pb2

from tests.cases.field_driver import FieldRun
from tests.contract.attachments import got, looking, put
from tests.contract.calls import DEADLINE_S, Calls, imported
from tests.contract.refusal import refusal_of
from tests.served import Served

NOWHERE = ("00" * 32, "image/png")


@dataclass
class AttachmentRun(FieldRun):
    """A run of a field case. `stored` has digest and media type of each attachment by its alias."""

    directory: Path = Path()
    fresh: Callable[[], Served] | None = None
    other: Served | None = None
    stored: dict[str, tuple[str, str]] = field(default_factory=dict)
    bytes_of: dict[str, bytes] = field(default_factory=dict)

    def _server(self, op: dict[str, Any]) -> Served:
        if op.get("server") != "fresh":
            return self.served
        if self.other is None:
            assert self.fresh is not None
            self.other = self.fresh()
        return self.other

    def _put_attachment(self, op: dict[str, Any]) -> None:
        data = bytes.fromhex(op["bytes"]["$bytes_hex"])
        answer = put(self.served.stub, data, media_type=op["media_type"])
        self.stored[op["as"]] = answer.sha256.hex(), op["media_type"]
        self.bytes_of[answer.sha256.hex()] = data

    def _get_attachment(self, op: dict[str, Any]) -> None:
        digits, _ = self.stored[op["ref"]]
        assert got(self._server(op).stub, bytes.fromhex(digits)) == self.bytes_of[digits]

    def _append(self, op: dict[str, Any]) -> None:
        super()._append(op | {"data": self._resolved(op["data"])})

    def _resolved(self, form: Any) -> Any:
        match form:
            case {"type": "attachment", "ref": {"$attachment": alias}}:
                digits, media_type = self.stored.get(alias, NOWHERE)
                return {"type": "attachment", "sha256": digits, "media_type": media_type}
            case dict():
                return {key: self._resolved(each) for key, each in form.items()}
            case list():
                return [self._resolved(each) for each in form]
        return form

    def _wipe(self, _op: dict[str, Any]) -> None:
        """Do nothing: the service keeps nothing where it runs but its database and directory."""

    def _fault(self, op: dict[str, Any]) -> dict[str, Any]:
        digits, _ = self.stored[op["ref"]]
        for path in self.directory.rglob(f"{digits}-*"):
            if op["kind"] == "remove_blob":
                path.unlink()
            else:
                flip(path)
        return {"ok": True}

    def _export(self, op: dict[str, Any]) -> None:
        written = self._of(op)
        request = service_pb2.ExportSessionRequest(
            session_id=written.calls.session_id, with_attachments=op["with_attachments"]
        )
        pieces = self.served.stub.ExportSession(request, timeout=DEADLINE_S)
        self.files[op["as"]] = b"".join(each.data for each in pieces)
        self.sessions[f"file {op['as']}"] = written.twin(written.calls)

    def _import(self, op: dict[str, Any]) -> None:
        stub = self._server(op).stub
        answer = imported(stub, self.files[op["file"]], self._session_id(op["as_session"]))
        source = self.sessions[f"file {op['file']}"]
        self.sessions[op["as_session"]] = source.twin(Calls(stub, answer.session.session_id))
        self._read_fold({"session": op["as_session"]})


def attachment_run(serve: Callable[..., Served], backend: str, directory: Path) -> AttachmentRun:
    """Return a run on a server of its own, and what starts a fresh one."""
    names = {"FOLDLOG_OBJECT_DIRECTORY": str(directory), "FOLDLOG_OBJECT_INLINE_BYTES": "0"}
    served = serve(backend, **names)
    restart = served.restart if backend != "sqlite-memory" else None
    return AttachmentRun(
        served, restart, lambda ms: None, directory=directory, fresh=lambda: serve(backend)
    )


def flip(path: Path) -> None:
    """Change one bit of a file."""
    data = path.read_bytes()
    path.write_bytes(bytes([data[0] ^ 1]) + data[1:])


@dataclass
class ImageRun:
    """A run of an ancestor's case; its images are bytes here, and its ids digests."""

    log: Calls
    directory: Path
    image: bytes = b"\x89PNG 10x8 red"
    digest: bytes | None = None

    def run(self, ops: list[dict[str, Any]]) -> dict[str, Any]:
        """Run the ops and return what all of them gave."""
        told: dict[str, Any] = {}
        for op in ops:
            told |= self._outcome(op)
        return told

    def _outcome(self, op: dict[str, Any]) -> dict[str, Any]:
        step: Callable[[dict[str, Any]], dict[str, Any]] = getattr(self, f"_{op['op']}")
        try:
            return step(op)
        except grpc.RpcError as error:
            return {"error": refusal_of(error).reason}

    def _save(self, op: dict[str, Any]) -> dict[str, Any]:
        again = op["image"] == "same bytes"
        answer = put(self.log.stub, self.image, media_type=op.get("mediaType", ""))
        name = op["name"].replace("<BEL>", "\a")
        self.log.append(looking(answer.sha256, name=name))
        kept = self.log.messages()[-1].parts.parts[1].attachment.name
        if not again:
            return {"name": kept}
        count = len([path for path in self.directory.rglob("*") if path.is_file()])
        equal = got(self.log.stub, answer.sha256) == self.image
        return {
            "name2": kept,
            "same_id": answer.existed,
            "objects": count,
            "bytes_equal": equal,
        }

    def _read(self, op: dict[str, Any]) -> dict[str, Any]:
        told: dict[str, Any] = {"ok": True}
        match op["ref"]:
            case {"attachmentId": "sha256:000...0"}:
                digest = bytes(32)
            case {"attachmentId": other}:
                digest = str(other).encode()
            case ref:
                digest = self._stored()
                if "another name" in ref:
                    self.log.append(looking(digest, name="renamed"))
                    told["name"] = self.log.messages()[-1].parts.parts[1].attachment.name
        return told | {"bytes_equal": got(self.log.stub, digest) == self.image}

    def _stored(self) -> bytes:
        if self.digest is None:
            self.digest = put(self.log.stub, self.image).sha256
        return self.digest

    def _corrupt(self, _op: dict[str, Any]) -> dict[str, Any]:
        self._stored()
        for path in self.directory.rglob("*"):
            if path.is_file():
                flip(path)
        return {}

    def _commit(self, _op: dict[str, Any]) -> dict[str, Any]:
        self.log.append(looking(self._stored(), size_bytes=1))
        return {"ok": True}
