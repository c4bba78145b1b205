"""API keys as text, and making them."""

from __future__ import annotations

import asyncio
import re
from hashlib import sha256
from pathlib import Path

import pytest
from foldlog.application.keyring import new_key
from foldlog.client.credentials import metadata_of
from foldlog.core.errors import InvalidFieldError, OverloadedError, UnauthenticatedError
from foldlog.core.key import ApiKey
from foldlog.core.role import Role
from foldlog.persistence.beside import open_beside
from foldlog.server.keys import LOOKS, KeyAuthenticator
from foldlog.settings import Settings


def test_a_key_has_a_form_that_scanners_find_and_that_comes_back() -> None:
    key, row = new_key("red", Role.WRITER, {"team": "a"}, "worker")
    assert re.fullmatch(r"foldlog_[0-9a-f]{16}_[0-9a-f]{64}", key.text)
    assert ApiKey.parsed(key.text) == key
    assert (row.key_id, row.tenant, row.role) == (key.key_id, "red", "writer")
    assert row.secret_sha256 == sha256(bytes.fromhex(key.text.split("_")[2])).digest()


def test_no_two_keys_are_alike() -> None:
    keys = [new_key("t", Role.READER, {})[0] for _ in range(100)]
    assert len({key.key_id for key in keys}) == len({key.secret for key in keys}) == 100


def test_a_secret_does_not_show() -> None:
    key, row = new_key("t", Role.READER, {})
    assert key.secret.hex() not in repr(key) + repr(row)
    assert repr(key.secret) not in repr(key)


GOOD = f"foldlog_{'0a' * 8}_{'1b' * 32}"


@pytest.mark.parametrize(
    "text",
    ["", "foldlog_", GOOD[:-1], GOOD + "0", GOOD + "\n", GOOD.upper(), " " + GOOD, "x" + GOOD],
)
def test_what_is_no_key_is_none(text: str) -> None:
    assert ApiKey.parsed(text) is None


@pytest.mark.parametrize("tenant", ["", "a\x00b", "a\nb", "é" * 65, "\udc80"])
def test_a_tenant_has_a_name_that_people_can_read(tenant: str) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        new_key(tenant, Role.READER, {})
    assert set(caught.value.fields) == {"tenant"}


def test_a_key_that_has_expired_is_not_made() -> None:
    with pytest.raises(InvalidFieldError):
        new_key("t", Role.READER, {}, expires_ns=1)


def test_a_client_says_its_key_and_never_shows_a_bad_one() -> None:
    assert metadata_of("k") == (("authorization", "Bearer k"),)
    assert metadata_of("") == ()
    for bad in ("hush\n", " hush", "hüsh"):
        with pytest.raises(ValueError, match="printable ASCII") as caught:
            metadata_of(bad)
        assert bad not in str(caught.value)


def test_who_tries_keys_at_random_keeps_out_nobody_who_was_let_in(tmp_path: Path) -> None:
    store = open_beside(Settings(database_url=f"sqlite:///{tmp_path / 'keys.db'}"))
    key, row = new_key("red", Role.READER, {})
    store.keys.insert(row)

    async def called() -> tuple[list[object], object, object]:
        keys = KeyAuthenticator(store.keys, within_s=0)  # each call looks

        def call(made: ApiKey) -> asyncio.Task[object]:
            metadata = {"authorization": f"Bearer {made.text}"}
            return asyncio.create_task(keys.caller_of(metadata))

        await call(key)
        others = [call(new_key("red", Role.READER, {})[0]) for _ in range(LOOKS + 1)]
        known = call(key)
        found = await asyncio.gather(*others, known, return_exceptions=True)
        await keys.close()
        return list(found[:LOOKS]), found[LOOKS], found[-1]

    tried, too_many, known = asyncio.run(called())
    store.close()
    assert {type(each) for each in tried} == {UnauthenticatedError}
    assert isinstance(too_many, OverloadedError)
    assert getattr(known, "tenant", None) == "red"
