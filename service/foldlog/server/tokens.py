"""Callers told by the bearer tokens of an identity provider: OIDC's JWTs."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import jwt

from foldlog.application.scope import Scope
from foldlog.core.errors import InvalidFieldError, TooLargeError, UnauthenticatedError
from foldlog.core.role import Role
from foldlog.core.validation import validate_labels, validate_tenant
from foldlog.server.callers import Caller, Metadata, bearer_of
from foldlog.server.key_set import KeySet
from foldlog.settings import Limits, Settings

KNOWN = 10_000
VERIFIED_S = 60.0  # how long a verification counts: the key may have been taken back
MAX_SUBJECT = 200
REQUIRED = ["exp", "iss", "aud", "sub"]


class ClaimsError(ValueError):
    """A token's claims do not say who calls."""


@dataclass(frozen=True, slots=True)
class Claims:
    """The names of the claims that say what a caller may do."""

    tenant: str
    role: str
    labels: str

    def caller(self, claims: Mapping[str, Any]) -> Caller:
        """Return whom verified claims name. Raises ClaimsError."""
        tenant, role = claims.get(self.tenant), _role(claims.get(self.role))
        if not isinstance(tenant, str):
            raise ClaimsError("no tenant")
        labels = _labels(claims.get(self.labels))
        try:
            validate_tenant(tenant)
            validate_labels(labels, Limits().labels, Limits().label_bytes)
        except (InvalidFieldError, TooLargeError) as error:
            raise ClaimsError(str(error)) from None
        scope = Scope(frozenset(labels.items()), sees_audit=role is Role.ADMIN)
        return Caller(tenant, role, scope, f"subject {str(claims['sub'])[:MAX_SUBJECT]}")


def _role(claim: object) -> Role:
    """Return the highest role that a claim names: one by name, or several in a list."""
    names = [claim] if isinstance(claim, str) else claim
    known = {role.label: role for role in Role}
    found = [known[name] for name in names if name in known] if isinstance(names, list) else []
    if not found:
        raise ClaimsError("no role")
    return max(found)


def _labels(claim: object) -> dict[str, str]:
    if claim is None:
        return {}
    if not isinstance(claim, dict):
        raise ClaimsError("labels are an object")
    if not all(isinstance(value, str) for value in claim.values()):
        raise ClaimsError("a label is a text")
    return claim


@dataclass(frozen=True, slots=True)
class Verified:
    """A token that was verified: when, until when it is valid, and whom it names."""

    at_s: float
    expires_s: float
    caller: Caller


class TokenAuthenticator:
    """Knows callers by signed tokens, until these expire. What was verified is remembered."""

    def __init__(self, settings: Settings) -> None:
        self.again_s = settings.key_revocation_s / 2
        self._issuer, self._audience = settings.oidc_issuer, settings.oidc_audience
        self._leeway_s = settings.oidc_leeway_s
        self._claims = Claims(
            settings.oidc_tenant_claim, settings.oidc_role_claim, settings.oidc_labels_claim
        )
        self._keys = KeySet(settings.oidc_jwks)
        self._known: OrderedDict[bytes, Verified] = OrderedDict()

    async def caller_of(self, metadata: Metadata) -> Caller:
        """Return the caller whom a call's token names."""
        token = bearer_of(metadata)
        digest = sha256(token.encode()).digest()
        known = self._known.get(digest)
        if known is None or time.monotonic() - known.at_s >= VERIFIED_S:
            self._known.pop(digest, None)
            known = self._known[digest] = await self._verified(token)
            if len(self._known) > KNOWN:
                self._known.popitem(last=False)
        if known.expires_s + self._leeway_s <= time.time():
            raise UnauthenticatedError
        return known.caller

    async def _verified(self, token: str) -> Verified:
        at_s = time.monotonic()
        try:
            kid = jwt.get_unverified_header(token).get("kid", "")
            key = await self._keys.key(kid if isinstance(kid, str) else "")
            if key is None:
                raise UnauthenticatedError
            claims = jwt.decode(
                token,
                key.key,
                algorithms=list(key.algorithms),
                audience=self._audience,
                issuer=self._issuer,
                leeway=self._leeway_s,
                options={"require": REQUIRED},
            )
            return Verified(at_s, float(claims["exp"]), self._claims.caller(claims))
        except (jwt.PyJWTError, ClaimsError, ValueError) as error:
            raise UnauthenticatedError from error

    async def close(self) -> None:
        """Do nothing: what is read is read to its end, which is near."""
