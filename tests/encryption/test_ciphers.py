"""Keys and ciphers: what is bound to what, and who makes a key."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from foldlog.encryption.master_keys import LocalMasterKeys, Wrapped, new_line, parse
from foldlog.encryption.objects import AttachmentCipher
from foldlog.encryption.recorder import EncryptedRecorder
from foldlog.encryption.session_ciphers import SessionCipher, SessionCiphers, kept_ciphers
from foldlog.internal.v1.storage_pb2 import Envelope
from foldlog.persistence.errors import (
    KeyDamagedError,
    MasterKeyMissingError,
    ObjectDamagedError,
)
from foldlog.persistence.rows import SessionStoredEvent
from foldlog.persistence.store import Store, open_store

from tests.encryption.keys import MASTER_KEY, master_key
from tests.persistence.stores import fresh_url

SESSION = UUID(int=1)
KEY = bytes(range(32))


@pytest.fixture(params=["sqlite-file", "postgres", "postgres-partitioned"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store in clear."""
    with ExitStack() as stack:
        opened = open_store(stack.enter_context(fresh_url(request.param, tmp_path)), pool_size=12)
        stack.callback(opened.close)
        yield opened


def ciphers(store: Store, *key_ids: str) -> SessionCiphers:
    """Return ciphers that have nothing in memory yet."""
    keys = parse(" ".join(master_key(each) for each in key_ids or ("first",)))
    return SessionCiphers(store.data_keys, LocalMasterKeys(keys), kept_ciphers())


def encrypted_row(version: int, body: bytes = b"body") -> SessionStoredEvent:
    state = Envelope(seq=version, body=body).SerializeToString()
    return SessionStoredEvent(SESSION, version, "event", state)


def body_of(row: object) -> tuple[bytes, bool]:
    envelope = Envelope.FromString(row.state)  # type: ignore[attr-defined]
    return envelope.body, envelope.HasField("still_encrypted")


@pytest.mark.parametrize(
    "moved",
    [
        SessionCipher("tenant", UUID(int=2), KEY),
        SessionCipher("another", SESSION, KEY),
        SessionCipher("tenant", SESSION, KEY[::-1]),
    ],
    ids=["session", "tenant", "key"],
)
def test_what_is_encrypted_for_one_place_does_not_decrypt_for_another(moved: SessionCipher) -> None:
    cipher = SessionCipher("tenant", SESSION, KEY)
    encrypted = cipher.encrypt(b"body", 7, b"text")
    assert cipher.decrypt(b"body", 7, encrypted) == b"text"
    for decrypting, purpose, version in (
        (moved, b"body", 7),
        (cipher, b"body", 8),
        (cipher, b"metadata", 7),
    ):
        with pytest.raises(KeyDamagedError):
            decrypting.decrypt(purpose, version, encrypted)


@pytest.mark.parametrize("spoilt", [b"", b"short", bytes(60)], ids=["nothing", "short", "zeros"])
def test_what_was_never_encrypted_does_not_decrypt(spoilt: bytes) -> None:
    with pytest.raises(KeyDamagedError):
        SessionCipher("tenant", SESSION, KEY).decrypt(b"body", 1, spoilt)
    with pytest.raises(KeyDamagedError):
        LocalMasterKeys(parse(MASTER_KEY)).unwrap(Wrapped("first", spoilt), b"context")


def test_the_same_is_never_encrypted_to_the_same() -> None:
    cipher = SessionCipher("tenant", SESSION, KEY)
    assert len({cipher.encrypt(b"body", 1, b"text") for _ in range(100)}) == 100


def test_a_wrapped_key_is_bound_to_what_it_is_for() -> None:
    masters = LocalMasterKeys(parse(f"{master_key('new')}\n{MASTER_KEY}"))
    old = LocalMasterKeys(parse(MASTER_KEY)).wrap(KEY, b"one session")
    assert masters.unwrap(old, b"one session") == KEY
    assert masters.wrap(KEY, b"x").key_id == "new"
    with pytest.raises(KeyDamagedError):
        masters.unwrap(old, b"another session")
    with pytest.raises(MasterKeyMissingError, match="lost"):
        masters.unwrap(Wrapped("lost", old.data), b"one session")


def test_an_attachments_key_opens_no_other_attachment() -> None:
    cipher = AttachmentCipher(LocalMasterKeys(parse(MASTER_KEY)))
    pieces = cipher.begin()
    first, second = pieces.encrypt(0, b"first"), pieces.encrypt(1, b"second")
    key_id, wrapped = pieces.wrapped("tenant", b"digest")
    opened = cipher.open("tenant", b"digest", key_id, wrapped)
    assert (opened.decrypt(0, first), opened.decrypt(1, second)) == (b"first", b"second")
    assert opened.decrypt(1, first) is None
    for tenant, digest in (("another", b"digest"), ("tenant", b"another")):
        with pytest.raises(ObjectDamagedError):
            cipher.open(tenant, digest, key_id, wrapped)


def test_master_keys_are_read_in_order_with_comments() -> None:
    text = f"# in use\n{master_key('new')}  # since May\n\n{MASTER_KEY} {master_key('old')}\n"
    assert list(parse(text)) == ["new", "first", "old"]
    assert list(parse(new_line("made"))) == ["made"]
    assert new_line("made") != new_line("made")


@pytest.mark.parametrize(
    "text",
    ["", "# none", "key", "key:", "key:AAAA", "key:%%%", f":{MASTER_KEY.partition(':')[2]}"],
)
def test_what_is_no_master_key_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="master key"):
        parse(text)


def test_a_refusal_of_master_keys_does_not_tell_them() -> None:
    secret = MASTER_KEY.partition(":")[2]
    for text in (f"{MASTER_KEY} {MASTER_KEY}", f"bad id!:{secret}", f"first:{secret}x"):
        with pytest.raises(ValueError, match="master key") as caught:
            parse(text)
        assert secret[:10] not in str(caught.value)


def test_whoever_makes_a_sessions_key_at_once_all_use_the_first(store: Store) -> None:
    owners = {uuid4(): f"tenant {i % 3}" for i in range(20)}
    mine = [ciphers(store) for _ in range(6)]
    with ThreadPoolExecutor(6) as threads:
        made = list(threads.map(lambda each: each.ensure(owners), mine))
    for owner in owners:
        encrypted = made[0][owner].encrypt(b"body", 1, b"text")
        assert [each[owner].decrypt(b"body", 1, encrypted) for each in made] == [b"text"] * 6
        assert ciphers(store).get(owner).decrypt(b"body", 1, encrypted) == b"text"


def test_keys_exchanged_between_sessions_are_damaged(store: Store) -> None:
    one, other = uuid4(), uuid4()
    ciphers(store).ensure({one: "t", other: "t"})
    first, second = store.data_keys.find([one]), store.data_keys.find([other])
    assert store.data_keys.replace(first[0], second[0])
    with pytest.raises(KeyDamagedError):
        ciphers(store).get(one)


def test_rows_are_read_as_they_were_written_and_stored_otherwise(store: Store) -> None:
    recorder = EncryptedRecorder(store.recorder, ciphers(store))
    recorder.insert_events([encrypted_row(2), encrypted_row(3, b"")])
    recorder.insert_chunks([[encrypted_row(4)], [encrypted_row(5)]])
    recorder.replace_states(SESSION, [(4, encrypted_row(4, b"new").state)])
    expected = [(b"body", False), (b"", False), (b"new", False), (b"body", False)]
    assert [body_of(row) for row in recorder.select_events(SESSION)] == expected
    assert [body_of(row) for row in recorder.select_versions(SESSION, [2, 4])] == expected[::2]
    assert [body_of(row) for row in recorder.select_notifications(None, 10)] == expected
    found, _ = recorder.select_tenant_notifications("default", 0, 10, 1_000_000)
    assert [body_of(row) for row in found] == expected
    stored = [Envelope.FromString(row.state) for row in store.recorder.select_events(SESSION)]
    assert [bool(each.encrypted_body) for each in stored] == [True, False, True, True]
    assert [each.body for each in stored] == [b""] * 4


def test_rows_in_clear_and_damaged_rows_are_passed_on(store: Store) -> None:
    store.recorder.insert_events(
        [encrypted_row(2), SessionStoredEvent(SESSION, 3, "event", b"\xff\xff")]
    )
    recorder = EncryptedRecorder(store.recorder, ciphers(store))
    clear, damaged = recorder.select_events(SESSION)
    assert body_of(clear) == (b"body", False)
    assert damaged.state == b"\xff\xff"


def test_an_empty_bulk_write_writes_nothing(store: Store) -> None:
    recorder = EncryptedRecorder(store.recorder, ciphers(store))
    assert recorder.insert_chunks([]) == 0
    assert recorder.select_events(SESSION) == []
