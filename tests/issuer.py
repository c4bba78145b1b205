"""An identity provider of the tests' own: keys, a JWKS over real HTTP, and tokens."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

ISSUER = "https://issuer.example"
AUDIENCE = "foldlog"
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()
KEYS: dict[str, tuple[str, Any]] = {
    "rsa": ("RS256", RSA_KEY),
    "pss": ("PS256", RSA_KEY),
    "ec": ("ES256", EC_KEY),
    "ed": ("EdDSA", ED_KEY),
}


def jwk(kid: str, key: Any, **fields: str) -> dict[str, Any]:
    """Return a private key's public one as a JWK."""
    public = key.public_key()
    if isinstance(key, rsa.RSAPrivateKey):
        made = RSAAlgorithm.to_jwk(public, as_dict=True)
    elif isinstance(key, ec.EllipticCurvePrivateKey):
        made = ECAlgorithm.to_jwk(public, as_dict=True)
    else:
        made = OKPAlgorithm.to_jwk(public, as_dict=True)
    return {**made, "kid": kid, **fields}


def jwks(*kids: str) -> dict[str, Any]:
    """Return a JWKS of some of the keys, or of all."""
    return {"keys": [jwk(kid, KEYS[kid][1]) for kid in kids or KEYS]}


def claims(**changed: Any) -> dict[str, Any]:
    """Return the claims of an admin's token; a claim that is given as None is left out."""
    now = int(time.time())
    whole = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "somebody",
        "iat": now,
        "exp": now + 3_600,
        "tenant": "default",
        "role": "admin",
    }
    return {name: value for name, value in (whole | changed).items() if value is not None}


def token(kid: str = "rsa", /, **changed: Any) -> str:
    """Return a token signed with a key."""
    algorithm, key = KEYS[kid]
    return jwt.encode(claims(**changed), key, algorithm, headers={"kid": kid})


class Issuer:
    """What the HTTP server answers, and how often it was asked."""

    def __init__(self) -> None:
        self.document: Any = jwks()
        self.status = 200
        self.asked = 0
        self.address = ""

    def settings(self) -> dict[str, str]:
        """Return the environment of a service that takes its tokens."""
        return {
            "FOLDLOG_AUTH": "oidc",
            "FOLDLOG_OIDC_ISSUER": ISSUER,
            "FOLDLOG_OIDC_AUDIENCE": AUDIENCE,
            "FOLDLOG_OIDC_JWKS": self.address,
        }


@contextmanager
def serving() -> Iterator[Issuer]:
    """Serve a JWKS on a free port of this machine."""
    issuer = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.asked += 1
            body = json.dumps(issuer.document).encode()
            self.send_response(issuer.status)
            self.send_header("Location", "http://127.0.0.1:1/")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer.address = f"http://127.0.0.1:{server.server_port}/jwks"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
