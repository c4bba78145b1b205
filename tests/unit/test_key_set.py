"""Which keys of a JWKS are used."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from foldlog.core.errors import OverloadedError
from foldlog.server.authenticators import require_auth
from foldlog.server.key_set import KeySet, KeySetError, keys_of, require_source
from foldlog.settings import AuthSettingsError, Settings

from tests.issuer import EC_KEY, ED_KEY, RSA_KEY, jwk

LEFT_OUT: dict[str, dict[str, Any]] = {
    "symmetric": {"kty": "oct", "k": "c2VjcmV0", "kid": "k"},
    "for encryption": jwk("k", RSA_KEY, use="enc"),
    "of another algorithm": jwk("k", RSA_KEY, alg="HS256"),
    "an RSA key for ES256": jwk("k", RSA_KEY, alg="ES256"),
    "of an unknown curve": {**jwk("k", EC_KEY), "crv": "secp256k1"},
    "of an unknown kind": {"kty": "new", "kid": "k"},
    "half a key": {"kty": "RSA", "n": "AQAB", "kid": "k"},
}


def test_a_key_is_used_with_its_own_algorithms_only() -> None:
    document = {
        "keys": [
            jwk("r", RSA_KEY),
            jwk("p", RSA_KEY, alg="PS384"),
            jwk("e", EC_KEY),
            jwk("d", ED_KEY),
        ]
    }
    found = {kid: key.algorithms for kid, key in keys_of(document).items()}
    assert found == {
        "r": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
        "p": ("PS384",),
        "e": ("ES256",),
        "d": ("EdDSA",),
    }


@pytest.mark.parametrize("key", LEFT_OUT.values(), ids=list(LEFT_OUT))
def test_other_keys_are_left_out(key: dict[str, Any]) -> None:
    assert keys_of({"keys": [key, jwk("good", EC_KEY)]}).keys() == {"good"}


@pytest.mark.parametrize("document", [None, [], {}, {"keys": {}}, "keys"], ids=str)
def test_what_is_no_key_set_is_refused(document: object) -> None:
    with pytest.raises(ValueError, match="no JWKS"):
        keys_of(document)


RUBBISH = {
    "nothing": b"",
    "no HTTP": b"rubbish\r\n\r\n",
    "no status": b"HTTP/1.1 abc x\r\n\r\n",
    "headers without end": b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200 + b"\r\n",
    "no chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "deep": b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 100_000,
    "no text": b"HTTP/1.1 200 OK\r\n\r\n\xff\xfe",
}


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """Answer one call with these bytes, and give the address."""

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/jwks"
        thread.join()


@pytest.mark.parametrize("answer", RUBBISH.values(), ids=list(RUBBISH))
def test_an_issuer_that_answers_rubbish_is_as_one_that_is_away(answer: bytes) -> None:
    with answering(answer) as address, pytest.raises(OverloadedError):
        asyncio.run(KeySet(address).key("k"))


@pytest.mark.parametrize("source", ["http://issuer.example/jwks", "ftp://127.0.0.1/x", "/no/file"])
def test_keys_come_from_a_safe_place(source: str) -> None:
    with pytest.raises(KeySetError):
        require_source(source)


def test_the_settings_say_all_that_is_needed(tmp_path: Path) -> None:
    with pytest.raises(AuthSettingsError, match="oidc_issuer, oidc_audience, oidc_jwks"):
        require_auth(Settings(auth="keys,oidc"))
    file = tmp_path / "jwks"
    file.write_text("{}")
    require_auth(Settings(auth="oidc", oidc_issuer="i", oidc_audience="a", oidc_jwks=str(file)))
    require_auth(Settings(auth="keys"))
