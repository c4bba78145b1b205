"""What is stored says nothing to whoever has the database and no master key."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from foldlog.v1 import service_pb2

from tests.contract.attachments import digest_of, got, looking, put, sample
from tests.contract.calls import DEADLINE_S, Calls
from tests.contract.refusal import refused
from tests.contract.said import batches, custom, header, replacing, system, user
from tests.encryption.files import attachment_files, change, holds, rows
from tests.encryption.keys import MASTER_KEY, master_key
from tests.served import NotServingError, Served

SECRET = "the treasure lies under the third oak"
INLINE_BYTES = 1_000
ENCRYPTED = {
    "FOLDLOG_MASTER_KEYS": MASTER_KEY,
    "FOLDLOG_OBJECT_INLINE_BYTES": str(INLINE_BYTES),
    "FOLDLOG_OBJECT_GRACE_S": "0",
}


@pytest.fixture(params=["sqlite-file", "postgres"])
def backend(request: pytest.FixtureRequest) -> str:
    """A store that can be looked at from outside."""
    name: str = request.param
    return name


def told(stub: object, secret: str = SECRET, salt: str = "") -> Calls:
    """Return a session that holds a secret wherever one can be said."""
    metadata = f'{{"note": "{secret}"}}'
    log = Calls.create(stub, metadata_json=metadata)
    prompt = f"{secret}{salt}. " * 100
    log.append(user(secret), custom("kind", secret.encode(), "key"), header(system_prompt=prompt))
    small = f"{secret}{salt}".encode()
    large = sample(3 * INLINE_BYTES) + small * 100
    log.append(looking(put(stub, small).sha256, put(stub, large).sha256, name=secret))
    log.append(replacing(system(f"summary: {secret}"), 0, 0))
    log.update(metadata_json=metadata.replace("note", "noted"))
    return log


def grow(log: Calls, count: int = 1_300) -> None:
    """Append enough for a checkpoint."""
    for batch in batches([user(f"{SECRET} {i}") for i in range(count)]):
        log.append(*batch)


def test_nothing_said_stands_in_the_database(serve: Callable[..., Served], backend: str) -> None:
    served = serve(backend, **ENCRYPTED)
    log = told(served.stub)
    grow(log)
    listed = served.stub.ListSessions(service_pb2.ListSessionsRequest(), timeout=DEADLINE_S)
    assert [SECRET in each.metadata_json for each in listed.sessions] == [True]
    served.terminate()
    assert rows(served.database_url, "SELECT count(*) FROM foldlog_checkpoints")[0][0] > 0
    assert list(attachment_files(served))
    assert holds(served, SECRET.encode()) == []
    served.start()
    assert log.texts()[-1] == f"{SECRET} 1299"
    assert log.verify().intact


def test_in_clear_the_same_stands_there(serve: Callable[..., Served], backend: str) -> None:
    """The control: the look into the database finds what it is to find."""
    served = serve(backend, **(ENCRYPTED | {"FOLDLOG_MASTER_KEYS": ""}))
    told(served.stub)
    served.stub.ListSessions(service_pb2.ListSessionsRequest(), timeout=DEADLINE_S)
    served.terminate()
    found = holds(served, SECRET.encode())
    assert {"foldlog_events", "foldlog_sessions", "foldlog_objects"} <= set(found)
    assert any("objects/" in each for each in found)


def test_no_nonce_is_used_twice(serve: Callable[..., Served], backend: str) -> None:
    from foldlog.internal.v1.storage_pb2 import Envelope

    served = serve(backend, **ENCRYPTED)
    log = told(served.stub)
    grow(log, 300)
    log.snapshot()
    log.fork().append(user("b"))
    served.terminate()
    states = rows(served.database_url, "SELECT state FROM foldlog_events")
    envelopes = [Envelope.FromString(bytes(state)) for (state,) in states]
    nonces = [each.encrypted_body[:12] for each in envelopes if each.encrypted_body]
    assert len(nonces) > 300
    assert len(set(nonces)) == len(nonces)


def test_a_database_begun_in_clear_is_encrypted_from_then_on(
    serve: Callable[..., Served], backend: str
) -> None:
    served = serve(backend, **(ENCRYPTED | {"FOLDLOG_MASTER_KEYS": ""}))
    old = Calls.create(served.stub, metadata_json='{"n": 1}')
    old.append(user("before"), user("hidden"))
    digest = put(served.stub, b"put before").sha256
    served.terminate()
    served.set_environment(FOLDLOG_MASTER_KEYS=MASTER_KEY)
    served.start()
    old.append(user(SECRET), looking(digest), replacing(system(f"{SECRET}!"), 1, 1))
    child = old.fork(metadata_json=f'"{SECRET}"')
    child.append(user(f"child: {SECRET}"))
    old.snapshot()
    assert child.texts() == ["before", f"{SECRET}!", SECRET, "", f"child: {SECRET}"]
    assert got(served.stub, digest) == b"put before"
    assert (old.verify().intact, child.verify().intact) == (True, True)
    served.restart()
    assert old.texts() == ["before", f"{SECRET}!", SECRET, ""]
    served.terminate()
    assert holds(served, SECRET.encode()) == []
    assert holds(served, b"before")


@pytest.mark.parametrize("keys", ["", master_key("other")], ids=["none", "another"])
def test_a_service_without_the_key_says_what_is_missing_and_does_not_start(
    serve: Callable[..., Served], backend: str, keys: str
) -> None:
    served = serve(backend, **ENCRYPTED)
    told(served.stub)
    served.terminate()
    served.set_environment(FOLDLOG_MASTER_KEYS=keys)
    with pytest.raises(NotServingError) as caught:
        served.start()
    said = str(caught.value)
    assert "1 sessions and 3 attachments are encrypted under the master key 'first'" in said
    assert "FOLDLOG_MASTER_KEY_FILE" in said


def test_what_a_missing_key_hides_is_refused_by_name_and_the_rest_works(
    serve: Callable[..., Served], backend: str
) -> None:
    served = serve(backend, **ENCRYPTED)
    hidden = told(served.stub)
    attached = digest_of(SECRET.encode())
    child = hidden.fork()
    served.terminate()
    served.set_environment(
        FOLDLOG_MASTER_KEYS=master_key("other"), FOLDLOG_ALLOW_MISSING_MASTER_KEYS="true"
    )
    served.start()
    new = Calls.create(served.stub)
    new.append(user("a"))
    for log in (hidden, child):
        for call in (log.fold, log.events, log.export, partial(log.append, user("b"))):
            with refused("ENCRYPTION_KEY_MISSING", key_id="first"):
                call()
    with refused("ENCRYPTION_KEY_MISSING", key_id="first"):
        got(served.stub, attached)
    assert new.texts() == ["a"]
    served.terminate()
    served.set_environment(FOLDLOG_MASTER_KEYS=f"{master_key('other')} {MASTER_KEY}")
    served.start()
    assert hidden.texts()[0] == f"summary: {SECRET}"
    verdicts = hidden.verify(), new.verify()
    assert [list(each.faults) for each in verdicts if not each.intact] == []


def test_without_the_key_the_chain_is_still_verified(
    serve: Callable[..., Served], backend: str
) -> None:
    served = serve(backend, **ENCRYPTED)
    log = told(served.stub)
    child = log.fork()
    child.append(user("child"))
    chain = child.verify().chain
    served.terminate()
    served.set_environment(
        FOLDLOG_MASTER_KEYS=master_key("other"), FOLDLOG_ALLOW_MISSING_MASTER_KEYS="true"
    )
    served.start()
    answer = child.verify()
    assert answer.chain == chain
    assert not answer.intact
    said = {fault.description for fault in answer.faults}
    assert said == {"it is encrypted under the master key 'first', which the service does not have"}


def test_a_row_that_was_moved_does_not_decrypt(serve: Callable[..., Served], backend: str) -> None:
    served = serve(backend, **ENCRYPTED)
    log = Calls.create(served.stub)
    log.append(user("a"), user("b"), user("c"))
    served.terminate()
    change(
        served.database_url,
        "UPDATE foldlog_events SET state = (SELECT state FROM foldlog_events o"
        " WHERE o.originator_version = 3 AND o.originator_id = foldlog_events.originator_id)"
        " WHERE originator_version = 4",
    )
    served.start()
    with refused("EVENT_CORRUPT", session_id=log.session_id):
        log.fold()
    assert "it does not decrypt" in {fault.description for fault in log.verify().faults}


def test_a_damaged_data_key_harms_its_own_session_only(
    serve: Callable[..., Served], backend: str
) -> None:
    """Others are listed, followed and written: the index passes its rows, those to come too."""
    served = serve(backend, **ENCRYPTED)
    logs = [Calls.create(served.stub, metadata_json=f'"{i}"') for i in range(3)]
    for log in logs:
        log.append(user("a"))
    served.stub.ListSessions(
        service_pb2.ListSessionsRequest(), timeout=DEADLINE_S
    )  # all is indexed
    served.terminate()
    key = f"(SELECT aggregate_id FROM foldlog_sessions WHERE session_id = '{logs[0].session_id}')"
    damage = "UPDATE foldlog_session_keys SET wrapped = key_id::bytea WHERE aggregate_id = "
    if backend == "sqlite-file":
        damage = damage.replace("key_id::bytea", "CAST(key_id AS BLOB)")
    change(served.database_url, damage + key)
    change(served.database_url, "DELETE FROM foldlog_tracking")  # all is to be passed once more
    for table in ("sessions", "session_terms", "usage"):
        change(served.database_url, f"DELETE FROM foldlog_{table}")
    served.start()
    with refused("EVENT_CORRUPT"):
        logs[0].fold()
    logs[1].append(user("b"))
    listed = served.stub.ListSessions(service_pb2.ListSessionsRequest(), timeout=DEADLINE_S)
    assert {each.session_id for each in listed.sessions} == {each.session_id for each in logs[1:]}
    assert logs[1].texts() == ["a", "b"]


def test_a_session_whose_key_is_missing_harms_no_write_beside_it(
    serve: Callable[..., Served], backend: str
) -> None:
    """Writes of many sessions are committed together."""
    served = serve(backend, **(ENCRYPTED | {"FOLDLOG_MASTER_KEYS": ""}))
    log = Calls.create(served.stub)
    log.append(user("in clear"))
    served.terminate()
    served.set_environment(FOLDLOG_MASTER_KEYS=MASTER_KEY)
    served.start()
    log.append(user("encrypted"))
    served.terminate()
    served.set_environment(
        FOLDLOG_MASTER_KEYS=master_key("other"), FOLDLOG_ALLOW_MISSING_MASTER_KEYS="true"
    )
    served.start()
    others = [Calls.create(served.stub) for _ in range(8)]

    def hindered(_: int) -> None:
        with refused("ENCRYPTION_KEY_MISSING", key_id="first"):
            log.append(user("b"))

    def appended(number: int) -> None:
        others[number % 8].append(user("c"))

    with ThreadPoolExecutor(16) as threads:
        refusals = threads.map(hindered, range(100))
        list(threads.map(appended, range(100)))
        list(refusals)


def test_a_service_of_master_keys_wraps_in_place_of_a_file(
    serve: Callable[..., Served], backend: str, tmp_path: Path
) -> None:
    log = tmp_path / "asked"
    named = {
        "FOLDLOG_MASTER_KEYS": "",
        "FOLDLOG_MASTER_KEY_SERVICE": "tests.encryption.key_service:opened",
        "KEY_SERVICE_LOG": str(log),
    }
    served = serve(backend, **(ENCRYPTED | named))
    session = told(served.stub)
    digest = put(served.stub, SECRET.encode()).sha256
    served.restart()
    assert session.texts()[0] == f"summary: {SECRET}"
    asked = log.read_text()
    for _ in range(3):
        session.append(user("more"))
        assert session.texts()[-1] == "more"
    assert log.read_text() == asked  # once for a session that a process opens
    assert got(served.stub, digest) == SECRET.encode()
    assert session.verify().intact
    served.terminate()
    assert holds(served, SECRET.encode()) == []
    key_ids = rows(served.database_url, "SELECT DISTINCT key_id FROM foldlog_session_keys")
    assert key_ids == [("kms-1",)]


@pytest.mark.parametrize("name", ["tests.encryption.key_service", "tests.nowhere:opened"])
def test_a_service_of_master_keys_that_is_not_there_is_named(
    serve: Callable[..., Served], name: str
) -> None:
    with pytest.raises(NotServingError, match=name):
        serve("sqlite-memory", FOLDLOG_MASTER_KEY_SERVICE=name)


def test_a_damaged_piece_of_a_large_attachment_is_told(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    served = serve("sqlite-file", **ENCRYPTED)
    digest = put(served.stub, sample(3_000_000)).sha256
    (file,) = attachment_files(served)
    content = bytearray(file.read_bytes())
    content[1_500_000] ^= 1
    file.write_bytes(content)
    assert got(served.stub, digest, 0, 1_000_000) == sample(3_000_000)[:1_000_000]
    with refused("ATTACHMENT_CORRUPT"):
        got(served.stub, digest, 1_400_000, 200_000)
    assert put(served.stub, sample(3_000_000)).sha256 == digest
    assert got(served.stub, digest) == sample(3_000_000)
