"""Foldlog as the public checker agent-memory-integrity sees a store: `agmi-check --adapter ...`.

Sessions are written, anchored and verified through the command line; rows are edited with SQL.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from agmi.adapters.base import MemoryAdapter, Record
from foldlog.internal.v1.storage_pb2 import Envelope
from foldlog.v1.event_pb2 import EventBody

from tests.cli.shell import Shell
from tests.integrity.attacker import Attacker, RawRow
from tests.served import Served

LATER_S = 86_400


class FoldlogAdapter(MemoryAdapter):
    """A service on a SQLite file; its key and its anchors are elsewhere."""

    name = "foldlog"
    detection_point = "audit"
    supports_replay = supports_metadata = supports_snapshot = True

    def setup(self) -> None:
        """Start a service on an empty file."""
        self._folder = Path(tempfile.mkdtemp(prefix="foldlog-agmi-"))
        self._file = self._folder / "store" / "foldlog.db"
        self._file.parent.mkdir()
        self._key, self._anchors = self._folder / "signing.pem", self._folder / "anchors.jsonl"
        Shell("").ok("signing-key", str(self._key))
        environment = {"FOLDLOG_SIGNING_KEY_FILE": str(self._key)}
        self._served = Served(f"sqlite:///{self._file}", self._folder, environment).start()
        self._attacker = Attacker(self._served.database_url)

    def teardown(self) -> None:
        """Stop it and remove everything."""
        self._served.close()
        shutil.rmtree(self._folder)

    @property
    def _user(self) -> Shell:
        return Shell(self._served.address)

    def _seed(self, session: str, count: int) -> None:
        self._user.ok("create", session)
        for number in range(count):
            self._user.ok("append", session, f"{session} says {number}")
        self._user.ok("anchor", "--to", str(self._anchors))

    def seed(self, n: int) -> None:
        """Write a session, and anchor it as a scheduled job would."""
        self._seed("first", n)

    def seed_other(self, n: int) -> None:
        """Write a second session."""
        self._seed("second", n)

    def append_genuine(self) -> None:
        """Write one more message, and anchor it."""
        self._user.ok("append", "first", "first says one thing more")
        self._user.ok("anchor", "--to", str(self._anchors))

    def _rows(self, session: str) -> list[RawRow]:
        return [row for row in self._attacker.rows(session) if row.topic == "event"]

    def _records(self, session: str) -> list[Record]:
        rows = enumerate(self._rows(session))
        return [Record(at, asdict(row) | {"session": session}) for at, row in rows]

    def read_all_raw(self) -> list[Record]:
        """Return the events' rows of the session."""
        return self._records("first")

    def read_other_raw(self) -> list[Record]:
        """Return those of the second session."""
        return self._records("second")

    def write_raw(self, record: Record) -> None:
        """Put a row's state into the slot of a number, or behind the newest."""
        rows, state = self._rows("first"), record.fields["state"]
        if record.seq < len(rows):
            self._attacker.put("first", replace(rows[record.seq], state=state))
            return
        version, place = rows[-1].version + 1, self._attacker.next_place()
        new = replace(rows[-1], version=version, place=place, state=state, request_key=None)
        self._attacker.put("first", new)

    def delete_raw(self, seq: int) -> None:
        """Delete a row."""
        version = self._rows("first")[seq].version
        self._attacker.cut("first", version, version)

    def replay_onto(self, victim_seq: int, donor: Record) -> None:
        """Put another row's state into a slot."""
        self.write_raw(Record(victim_seq, donor.fields))

    def read_meta(self, seq: int) -> dict[str, Any]:
        """Return when a message was said."""
        return {"time_s": self._rows("first")[seq].envelope.time_s}

    def write_meta(self, seq: int, meta: dict[str, Any]) -> None:
        """Let a message have been said later."""
        row = self._rows("first")[seq]
        later = meta["time_s"] + LATER_S
        self._attacker.put("first", row.changed(lambda e: setattr(e, "time_s", later)))

    def mutate_payload(self, record: Record) -> Record:
        """Let a message say something else."""
        return Record(record.seq, record.fields | {"state": _reworded(record, b"SAYS")})

    def forge_record(self, template: Record) -> Record:
        """Return a new message with the next seq, made of the newest."""
        envelope = Envelope.FromString(_reworded(template, b"said"))
        envelope.seq += 1
        fields = template.fields | {"state": envelope.SerializeToString()}
        return Record(template.seq + 1, fields)

    def identity_of(self, record: Record) -> str:
        """Return a row's slot."""
        return f"{record.fields['session']} {record.fields['version']}"

    def payload_of(self, record: Record) -> str:
        """Return what a message says."""
        body = Envelope.FromString(record.fields["state"]).body
        return EventBody.FromString(body).message.text

    def owner_of(self, record: Record) -> str:
        """Return whose slot it is."""
        return str(record.fields["session"])

    def snapshot_store(self) -> Path:
        """Copy the folder of the file, with the service stopped."""
        self._served.terminate()
        copy = self._folder / "copy"
        shutil.copytree(self._file.parent, copy)
        self._served.start()
        return copy

    def restore_store(self, token: object) -> None:
        """Put the copy back, with the service stopped."""
        self._served.terminate()
        shutil.rmtree(self._file.parent)
        shutil.copytree(str(token), self._file.parent)
        self._served.start()

    def reload(self) -> None:
        """Start the service again."""
        self._served.restart("graceful")

    def verify(self) -> bool:
        """Return what `foldlog verify` says."""
        known = ("--anchors", str(self._anchors), "--public-key", f"{self._key}.pub")
        result = self._user.run("verify", "first", *known)
        self.verify_detail = " ".join(result.stdout.split())
        return result.exit_code == 0


def _reworded(record: Record, word: bytes) -> bytes:
    envelope = Envelope.FromString(record.fields["state"])
    envelope.body = envelope.body.replace(b"says", word)
    return envelope.SerializeToString()
