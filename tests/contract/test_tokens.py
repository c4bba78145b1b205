"""Servers that take the tokens of an identity provider."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.contract.calls import Calls, fresh_id
from tests.contract.refusal import Refusal, refusal_of, refused
from tests.contract.said import user
from tests.issuer import KEYS, OTHER_RSA_KEY, RSA_KEY, Issuer, claims, jwk, jwks, serving, token
from tests.keyed import make_key, stub_of
from tests.served import Served


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    """An issuer over HTTP."""
    with serving() as issuer:
        yield issuer


@pytest.fixture
def served(serve: Callable[..., Served], issuer: Issuer) -> Served:
    """A server that takes the issuer's tokens."""
    return serve("sqlite-memory", **issuer.settings(), FOLDLOG_OIDC_LEEWAY_S="0")


def answer(served: Served, given: str) -> Refusal | None:
    """Make a call with a token and return what refused it, if anything did."""
    try:
        Calls.create(stub_of(served, given))
    except grpc.RpcError as error:
        return refusal_of(error)
    return None


def hmac_token(key: bytes, **header: Any) -> str:
    """Return a token signed with a shared secret, whatever the library thinks of that."""

    def encoded(part: Any) -> bytes:
        return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=")

    signed = encoded({"alg": "HS256", "typ": "JWT", **header}) + b"." + encoded(claims())
    signature = base64.urlsafe_b64encode(hmac.new(key, signed, hashlib.sha256).digest())
    return (signed + b"." + signature.rstrip(b"=")).decode()


def bad_tokens() -> Iterator[tuple[str, str]]:
    """Yield (what is wrong, a token)."""
    now = int(time.time())
    yield "expired", token(exp=now - 1)
    yield "not yet", token(nbf=now + 1_000)
    for name in ("exp", "iss", "aud", "sub", "tenant", "role"):
        yield f"no {name}", token(**{name: None})
    yield "another issuer", token(iss="https://other.example")
    yield "another audience", token(aud=["a", "b"])
    yield "an unknown role", token(role="root")
    yield "no known role", token(role=["root"])
    yield "a tenant of no name", token(tenant="")
    yield "tenants", token(tenant=["default"])
    yield "labels that are none", token(labels=["team=red"])
    yield "a label that is no text", token(labels={"team": 1})
    rsa = {"kid": "rsa"}
    yield "another key", jwt.encode(claims(), OTHER_RSA_KEY, "RS256", headers=rsa)
    yield "another key's id", jwt.encode(claims(), RSA_KEY, "RS256", headers={"kid": "ec"})
    yield "no key's id", jwt.encode(claims(), RSA_KEY, "RS256")
    yield "an unknown key", jwt.encode(claims(), OTHER_RSA_KEY, "RS256", headers={"kid": "x"})
    yield "no signature", jwt.encode(claims(), "", "none", headers=rsa)
    pem = RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    yield "the public key as a secret", hmac_token(pem, kid="rsa")
    yield "no secret", hmac_token(b"", kid="rsa")
    head, body, signature = token().split(".")
    yield "other claims", f"{head}.{token(role='reader').split('.')[1]}.{signature}"
    yield "half a token", f"{head}.{body}"
    yield "no token", "x"
    yield "an API key", "foldlog_0123456789abcdef_" + "0" * 64


def test_whoever_is_not_known_gets_one_answer_whatever_is_wrong(served: Served) -> None:
    answers = {wrong: answer(served, given) for wrong, given in bad_tokens()}
    expected = answers["expired"]
    assert expected is not None
    assert (expected.reason, expected.facts) == ("UNAUTHENTICATED", {})
    assert {wrong: found for wrong, found in answers.items() if found != expected} == {}
    assert answer(served, token()) is None


@pytest.mark.parametrize("kid", KEYS)
def test_tokens_of_every_kind_of_key_are_taken(served: Served, kid: str) -> None:
    assert answer(served, token(kid)) is None
    assert answer(served, token(kid, aud=["other", "foldlog"])) is None


def test_claims_say_tenant_role_and_labels(served: Served) -> None:
    tenant = fresh_id("t")
    writer = stub_of(served, token(tenant=tenant, role=["guest", "reader", "writer"]))
    log = Calls.create(writer, labels={"team": "red"})
    with refused("PERMISSION_DENIED", needs="the role admin"):
        log.delete()
    for labels, is_seen in (({"team": "red"}, True), ({"team": "blue"}, False)):
        reader = stub_of(served, token(tenant=tenant, role="reader", labels=labels))
        if is_seen:
            assert Calls(reader, log.session_id).get().labels["team"] == "red"
            continue
        with refused("SESSION_NOT_FOUND"):
            Calls(reader, log.session_id).get()
    with refused("SESSION_NOT_FOUND"):
        Calls(stub_of(served, token()), log.session_id).get()


def test_other_names_of_claims(serve: Callable[..., Served], issuer: Issuer) -> None:
    names = {"TENANT": "org", "ROLE": "https://x/groups", "LABELS": "only"}
    variables = {f"FOLDLOG_OIDC_{each}_CLAIM": name for each, name in names.items()}
    served = serve("sqlite-memory", **issuer.settings(), **variables)
    given = token(tenant=None, role=None, org="t", **{"https://x/groups": ["writer"]})
    assert answer(served, given) is None
    assert answer(served, token()) is not None


def test_a_new_key_is_found_and_unknown_ones_are_not_asked_for_without_end(
    served: Served, issuer: Issuer
) -> None:
    issuer.document = jwks("rsa")
    assert answer(served, token("rsa")) is None
    for _ in range(30):
        assert answer(served, token("ec")) is not None
    assert issuer.asked <= 5  # one in five seconds, however many calls
    issuer.document = jwks()
    deadline = time.monotonic() + 60
    while answer(served, token("ec")) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_an_issuer_that_is_away_is_waited_for(served: Served, issuer: Issuer) -> None:
    for broken in ({"status": 500}, {"status": 302}, {"document": "no set"}):
        issuer.status, issuer.document = 200, jwks()
        issuer.__dict__.update(broken)
        found = answer(served, token())
        assert found is not None
        assert found.reason == "OVERLOADED"
        assert found.retry is not None
    issuer.status, issuer.document = 200, jwks()
    assert answer(served, token()) is None
    issuer.status = 500
    assert answer(served, token("ec")) is None


def test_streams_end_with_the_token(serve: Callable[..., Served], issuer: Issuer) -> None:
    quickly = {"FOLDLOG_OIDC_LEEWAY_S": "0", "FOLDLOG_KEY_REVOCATION_S": "0.4"}
    served = serve("sqlite-memory", **issuer.settings(), **quickly)
    log = Calls.create(stub_of(served, token()))
    log.append(user("a"))
    short = stub_of(served, token(exp=int(time.time()) + 5))
    watch = Calls(short, log.session_id).watch()
    with pytest.raises(grpc.RpcError) as caught:
        for _ in watch:
            pass
    assert refusal_of(caught.value).reason == "UNAUTHENTICATED"


@pytest.mark.parametrize("alone", [True, False], ids=["one key without an id", "a key set"])
def test_keys_from_a_file(
    serve: Callable[..., Served], issuer: Issuer, tmp_path: Path, alone: bool
) -> None:
    file = tmp_path / "jwks.json"
    key = jwk("x", RSA_KEY)
    del key["kid"]
    file.write_text(json.dumps({"keys": [key]} if alone else jwks()))
    served = serve("sqlite-memory", **issuer.settings() | {"FOLDLOG_OIDC_JWKS": str(file)})
    given = jwt.encode(claims(), RSA_KEY, "RS256") if alone else token()
    assert answer(served, given) is None
    assert issuer.asked == 0


def test_keys_and_tokens_beside_each_other(serve: Callable[..., Served], issuer: Issuer) -> None:
    served = serve("sqlite-file", **issuer.settings() | {"FOLDLOG_AUTH": "keys,oidc"})
    log = Calls.create(stub_of(served, make_key(served.database_url)))
    log.append(user("a"))
    assert Calls(stub_of(served, token()), log.session_id).texts() == ["a"]
    with refused("UNAUTHENTICATED"):
        log.other(log.session_id).__class__(served.stub, log.session_id).get()


def test_the_audit_log_names_the_subject(serve: Callable[..., Served], issuer: Issuer) -> None:
    served = serve("sqlite-memory", **issuer.settings())
    stub = stub_of(served, token(sub="ann"))
    Calls.create(stub).delete()
    events = Calls(stub, "foldlog:audit").events()
    assert {json.loads(e.body.custom.payload)["by"] for e in events} == {"subject ann"}
