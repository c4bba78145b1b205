"""Which authenticator the settings want."""

from __future__ import annotations

from foldlog.core.key import PREFIX
from foldlog.persistence.store import Store
from foldlog.server.callers import Anyone, Authenticator, Caller, Metadata, bearer_of
from foldlog.server.keys import KeyAuthenticator
from foldlog.settings import AuthSettingsError, Settings, require_oidc


class KeysOrTokens:
    """Knows callers by API keys or by tokens: a key shows what it is."""

    def __init__(self, keys: Authenticator, tokens: Authenticator) -> None:
        self._keys, self._tokens = keys, tokens
        self.again_s = keys.again_s

    async def caller_of(self, metadata: Metadata) -> Caller:
        """Return the caller of a call."""
        is_key = bearer_of(metadata).startswith(PREFIX)
        return await (self._keys if is_key else self._tokens).caller_of(metadata)

    async def close(self) -> None:
        """Close both."""
        await self._keys.close()
        await self._tokens.close()


def authenticator_of(settings: Settings, store: Store) -> Authenticator:
    """Return what tells callers as the settings want it. They passed `require_auth`."""
    match settings.auth:
        case "none":
            return Anyone()
        case "keys":
            return KeyAuthenticator(store.keys, settings.key_revocation_s)
        case "oidc":
            return _tokens(settings)
    return KeysOrTokens(KeyAuthenticator(store.keys, settings.key_revocation_s), _tokens(settings))


def _tokens(settings: Settings) -> Authenticator:
    from foldlog.server.tokens import TokenAuthenticator

    return TokenAuthenticator(settings)


def require_auth(settings: Settings) -> None:
    """Raise AuthSettingsError unless the authenticator that the settings want can be made."""
    if "oidc" not in settings.auth.split(","):
        return
    require_oidc(settings)
    try:
        from foldlog.server.key_set import require_source
    except ImportError as error:
        raise AuthSettingsError(
            f"auth {settings.auth} needs what the extra foldlog[oidc] brings: {error}"
        ) from None
    require_source(settings.oidc_jwks)
