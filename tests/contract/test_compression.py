"""Compression changes what stands on disk, and nothing that anybody is told."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from foldlog.compression import ZSTD_1, is_packed
from foldlog.internal.v1.storage_pb2 import Envelope

from tests.contract.calls import Calls, fresh_id, imported, raw_call
from tests.contract.refusal import refused
from tests.contract.said import assistant, custom, replacing, result, system, user
from tests.encryption.files import rows
from tests.encryption.keys import MASTER_KEY
from tests.served import NotServingError, Served

NO_ZSTD = Path(__file__).with_name("no_zstd.py")  # not imported: it would take effect here
COMPRESSED = {"FOLDLOG_COMPRESSION": "zstd"}
SAID = "The file has three functions; the second one opens the database and reads every row. "
# A session's first row is the fact that it was created, so seq 2 is version 4.
DAMAGED_SEQ, VERSION = 2, 4


@pytest.fixture(params=["sqlite-file", "postgres"])
def backend(request: pytest.FixtureRequest) -> str:
    """A store that can be looked at from outside."""
    name: str = request.param
    return name


def said(stub: Any) -> Calls:
    """Return a session with long texts in it."""
    log = Calls.create(stub, request_id="new")
    log.append(user(SAID * 3), assistant(SAID * 4, "c1"), result(SAID * 20, "c1"))
    log.append(custom("note", SAID.encode() * 3, "key"), user(SAID))
    return log


def bodies(served: Served) -> list[bytes]:
    """Return what stands in the database for the bodies of its events, in their order."""
    query = "SELECT state FROM foldlog_events WHERE topic = 'event' ORDER BY originator_version"
    states = [bytes(row[0]) for row in rows(served.database_url, query)]
    return [Envelope.FromString(state).body for state in states]


def told(log: Calls) -> list[tuple[Any, ...]]:
    """Return what events say, but for the chain, which is the session's own."""
    return [(e.seq, e.type, e.time, e.body, e.position) for e in log.events()]


def edit(url: str, spoil: Callable[[bytes], bytes]) -> None:
    """Change the body of a row around the service."""
    import sqlite3

    import psycopg

    from tests.postgres import owner_url

    is_file = url.startswith("sqlite")
    path = url.removeprefix("sqlite:///")
    connection: Any = sqlite3.connect(path) if is_file else psycopg.connect(owner_url(url))
    where = f"FROM foldlog_events WHERE originator_version = {VERSION} AND topic = 'event'"
    ((state,),) = connection.execute(f"SELECT state {where}").fetchall()
    envelope = Envelope.FromString(bytes(state))
    envelope.body = spoil(envelope.body)
    change = f"UPDATE foldlog_events SET state = {'?' if is_file else '%s'} {where[20:]}"
    connection.execute(change, (envelope.SerializeToString(),))
    connection.commit()
    connection.close()


def test_bodies_are_stored_packed_and_read_as_they_were_sent(
    serve: Callable[..., Served], backend: str
) -> None:
    served, control = serve(backend, **COMPRESSED), serve(backend)
    log, other = said(served.stub), said(control.stub)
    before = log.events()
    assert [each.body for each in before] == [each.body for each in other.events()]
    assert log.verify().intact
    served.terminate()
    control.terminate()
    packed, clear = bodies(served), bodies(control)
    assert [is_packed(each) for each in packed] == [True] * 5
    assert not any(map(is_packed, clear))
    assert sum(map(len, packed)) < sum(map(len, clear)) / 3
    served.start()
    assert log.events() == before
    assert log.verify().intact


def test_a_file_of_a_session_is_the_same_with_and_without(
    serve: Callable[..., Served], backend: str
) -> None:
    exported = said(serve(backend).stub).export()
    compressing = serve(backend, **COMPRESSED)
    copy = fresh_id()
    imported(compressing.stub, exported, copy)
    again = Calls(compressing.stub, copy)
    back = fresh_id()
    in_clear = serve(backend)
    imported(in_clear.stub, again.export(), back)
    assert told(Calls(in_clear.stub, back)) == told(again)
    assert [is_packed(each) for each in bodies(compressing)] == [True] * 5


def test_forks_snapshots_and_rewinds_work_on_packed_rows(
    serve: Callable[..., Served], backend: str
) -> None:
    served = serve(backend, **COMPRESSED)
    log = said(served.stub)
    before = log.fold()
    fork = log.fork()
    log.append(replacing(system(SAID * 2), 0, 2))
    log.snapshot()
    served.terminate()
    served.start()
    assert fork.fold() == before
    assert log.texts() == [SAID * 2, SAID]
    log.rewind(5)
    assert [fork.verify().intact, log.verify().intact] == [True, True]


def test_a_database_is_read_whatever_the_setting_was(
    serve: Callable[..., Served], backend: str
) -> None:
    served = serve(backend, **COMPRESSED)
    log = said(served.stub)
    for compression in ("none", "zstd", "none"):
        served.terminate()
        served.set_environment(FOLDLOG_COMPRESSION=compression)
        served.start()
        log.append(user(SAID))
        assert log.texts()[-1] == SAID
    assert log.verify().intact
    served.terminate()
    assert [is_packed(each) for each in bodies(served)] == [True] * 5 + [False, True, False]


def test_bodies_are_compressed_before_they_are_encrypted(
    serve: Callable[..., Served], backend: str
) -> None:
    sizes = []
    for setting in ({}, COMPRESSED):
        served = serve(backend, FOLDLOG_MASTER_KEYS=MASTER_KEY, **setting)
        log = said(served.stub)
        before = log.events()
        served.terminate()
        states = rows(served.database_url, "SELECT state FROM foldlog_events WHERE topic = 'event'")
        envelopes = [Envelope.FromString(bytes(row[0])) for row in states]
        assert not any(each.body for each in envelopes)
        sizes.append(sum(len(each.encrypted_body) for each in envelopes))
        served.start()
        assert log.events() == before
        assert log.verify().intact
    assert sizes[1] < sizes[0] / 2


SPOILS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "cut short": (lambda body: body[: len(body) // 2], "does not decompress"),
    "100 GiB": (
        lambda body: ZSTD_1 + b"\xe0" + (100 << 30).to_bytes(8, "little") + body[3:],
        "no size that a body can have",
    ),
    "a newer way": (lambda body: b"\x0f" + body[1:], "this release does not know"),
    "another body": (lambda _: b"\x0a\x00", "does not match its commitment"),
}


@pytest.mark.parametrize(("spoil", "why"), list(SPOILS.values()), ids=list(SPOILS))
def test_a_damaged_frame_is_told_where_it_is_needed_and_nowhere_else(
    serve: Callable[..., Served], backend: str, spoil: Callable[[bytes], bytes], why: str
) -> None:
    served = serve(backend, **COMPRESSED)
    log = said(served.stub)
    served.terminate()
    edit(served.database_url, spoil)
    served.start()
    for read in (log.fold, log.events, log.export):
        with refused("EVENT_CORRUPT", seq=DAMAGED_SEQ) as refusal:
            read()
        assert why in refusal.message
    assert [each.seq for each in log.events(DAMAGED_SEQ + 1)] == [3, 4]
    assert not log.verify().intact


def without_library(directory: Path) -> dict[str, str]:
    """Return the environment of a service that is installed without the extra."""
    shim = directory / "shim"
    shim.mkdir()
    shutil.copy(NO_ZSTD, shim / "sitecustomize.py")
    return {"PYTHONPATH": str(shim)}


def test_without_the_extra_packed_rows_are_told_and_all_else_goes_on(
    serve: Callable[..., Served], backend: str, tmp_path: Path
) -> None:
    served = serve(backend, **COMPRESSED)
    log = said(served.stub)
    served.terminate()
    served.set_environment(FOLDLOG_COMPRESSION="none", **without_library(tmp_path))
    served.start()
    with refused("EVENT_CORRUPT", session_id=log.session_id, seq=0) as refusal:
        log.fold()
    assert "foldlog[zstd]" in refusal.message
    other = said(served.stub)
    assert other.texts()[-1] == SAID
    assert log.append(user("short")).first_seq == 5


def test_a_service_that_is_to_compress_does_not_start_without_the_extra(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    with pytest.raises(NotServingError, match=r"foldlog\[zstd\]"):
        serve("sqlite-file", **COMPRESSED, **without_library(tmp_path))


@pytest.mark.parametrize("first", [0x06, 0x07, 0x0F])
def test_no_body_that_a_worker_sends_can_be_taken_for_a_packed_one(
    memory: Served, first: int
) -> None:
    log = Calls.create(memory.stub)
    body = bytes([first]) + b"\x0a" * 10
    event = b"\x0a" + bytes([len(body)]) + body
    identity = log.session_id.encode()
    request = b"\x0a" + bytes([len(identity)]) + identity + b"\x1a" + bytes([len(event)]) + event
    with pytest.raises(grpc.RpcError) as caught:
        raw_call(memory.channel, "AppendEvents")(request)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert log.events() == []
