"""The public keys of an issuer of tokens: a JWKS from a file, or over HTTP."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, build_opener

from jwt import PyJWK
from jwt.exceptions import PyJWTError

from foldlog import observability
from foldlog.core.errors import OverloadedError
from foldlog.settings import AuthSettingsError, is_loopback

AGAIN_S = 5.0  # the least time between two looks for a key that is not known
AGED_S = 900.0  # after which keys are read again anyhow, so that one taken back stops
TIMEOUT_S = 5.0
MAX_BYTES = 1024 * 1024

RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
OF_CURVE = {"P-256": ("ES256",), "P-384": ("ES384",), "P-521": ("ES512",)}


class KeySetError(AuthSettingsError):
    """The setting names no key set."""


@dataclass(frozen=True, slots=True)
class IssuerKey:
    """A public key, and the algorithms it may be used with: none that is symmetric."""

    key: Any
    algorithms: tuple[str, ...]


class KeySet:
    """An issuer's keys. They are read on a thread, and again for an unknown one, but not often."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._is_remote = "://" in source
        require_source(source)
        self._keys: dict[str, IssuerKey] = {}
        self._read_at_s: float | None = None
        self._reading: asyncio.Task[None] | None = None

    async def key(self, kid: str) -> IssuerKey | None:
        """Return the key of an id; an empty id is for an issuer that has one key only.

        Raises OverloadedError while there are no keys, and they cannot be read.
        """
        if self._reading is None and self._is_due(kid):
            self._read_at_s = time.monotonic()
            self._reading = asyncio.get_running_loop().create_task(self._read())
        if self._reading is not None and self._found(kid) is None:
            await asyncio.shield(self._reading)
        return self._found(kid)

    def _is_due(self, kid: str) -> bool:
        if self._read_at_s is None:
            return True
        age_s = time.monotonic() - self._read_at_s
        return age_s >= (AGAIN_S if self._found(kid) is None else AGED_S)

    def _found(self, kid: str) -> IssuerKey | None:
        if kid:
            return self._keys.get(kid)
        return next(iter(self._keys.values())) if len(self._keys) == 1 else None

    async def _read(self) -> None:
        try:
            self._keys = await asyncio.to_thread(read_keys, self._source, self._is_remote)
        except (OSError, ValueError) as error:
            observability.log("oidc.keys_unreadable", level="warning", error=error)
            if not self._keys:
                self._read_at_s = None
                raise OverloadedError(cause="the issuer's keys cannot be read") from None
        finally:
            self._reading = None


def require_source(source: str) -> None:
    """Raise KeySetError for what is neither a file nor an address that is safe to ask."""
    if "://" not in source:
        if not Path(source).is_file():
            raise KeySetError(
                f"oidc_jwks: there is no file {source}, and it is no https:// address"
            )
        return
    parts = urlsplit(source)
    is_here = parts.scheme == "http" and is_loopback(parts.hostname or "")
    if parts.scheme != "https" and not is_here:
        raise KeySetError("oidc_jwks: keys come by https://, or by http:// from this machine only")


class _NoRedirects(HTTPRedirectHandler):
    """Follows no redirect: keys come from where the setting says."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """Return no request."""


def read_keys(source: str, is_remote: bool) -> dict[str, IssuerKey]:
    """Return the keys of a JWKS by their ids. Blocking. Raises OSError and ValueError."""
    try:
        data = _fetched(source) if is_remote else Path(source).read_bytes()
        if len(data) > MAX_BYTES:
            raise ValueError("the key set is too large")
        return keys_of(json.loads(data))
    except (HTTPException, RecursionError) as error:
        raise ValueError(f"it is no answer with a JWKS: {type(error).__name__}") from error


def _fetched(address: str) -> bytes:
    with build_opener(_NoRedirects).open(address, timeout=TIMEOUT_S) as answer:
        data: bytes = answer.read(MAX_BYTES + 1)
    return data


def keys_of(document: object) -> dict[str, IssuerKey]:
    """Return the usable keys of a JWKS by their ids. Raises ValueError for what is none."""
    listed = document.get("keys") if isinstance(document, Mapping) else None
    if not isinstance(listed, list):
        raise ValueError("it is no JWKS")
    found = {}
    for each in listed:
        key = _usable(each)
        if key is not None:
            found[str(each.get("kid", ""))] = key
    return found


def _usable(jwk: object) -> IssuerKey | None:
    """Return a key that signatures are checked with; others, and unknown ones, are left out."""
    if not isinstance(jwk, Mapping) or jwk.get("use", "sig") != "sig":
        return None
    algorithms = _algorithms(jwk)
    stated = jwk.get("alg")
    if stated is not None:
        algorithms = (stated,) if stated in algorithms else ()
    if not algorithms:
        return None
    try:
        return IssuerKey(PyJWK(dict(jwk), algorithms[0]).key, algorithms)
    except (PyJWTError, ValueError, TypeError):
        return None


def _algorithms(jwk: Mapping[str, Any]) -> tuple[str, ...]:
    match jwk.get("kty"):
        case "RSA":
            return RSA
        case "EC":
            return OF_CURVE.get(str(jwk.get("crv")), ())
        case "OKP":
            return ("EdDSA",)
    return ()
