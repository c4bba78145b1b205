"""Every setting of the service, in one place, from the environment or given by flags."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from ipaddress import ip_address
from typing import Any, Self, TypeVar, cast

KIB = 1024
MIB = 1024 * KIB

T = TypeVar("T")
Value = str | int | float | bool


def _setting(
    default: T,
    says: str,
    *,
    one_of: tuple[str, ...] = (),
    least: float = 0,
    is_secret: bool = False,
) -> T:
    metadata = {"says": says, "one_of": one_of, "least": least, "is_secret": is_secret}
    return field(default=default, repr=not is_secret, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Limits:
    """The sizes the service accepts; each error names the size and the limit."""

    request_fields: int = _setting(
        250_000,
        "Fields of one request, or of one element of a stream, nested ones counted; a decoded field"
        " takes much more memory than its bytes.",
        least=1_000,
    )
    event_bytes: int = _setting(7 * MIB // 2, "An event, encoded.", least=1)
    batch_events: int = _setting(1_000, "Events in one append.", least=1)
    batch_bytes: int = _setting(7 * MIB // 2, "All events of one append, encoded.", least=1)
    json_depth: int = _setting(128, "Nesting of free JSON.", least=1)
    session_id_bytes: int = _setting(512, "A session's id.", least=1)
    request_id_bytes: int = _setting(128, "A request's id.", least=1)
    custom_keys: int = _setting(8, "Keys of one custom event.")
    custom_key_bytes: int = _setting(128, "A key of a custom event.", least=1)
    labels: int = _setting(64, "Labels of one session.")
    label_bytes: int = _setting(256, "A label's key, and its value.", least=1)
    metadata_bytes: int = _setting(256 * KIB, "A session's metadata.")
    page_bytes: int = _setting(3 * MIB, "A page or a streamed piece the service sends.", least=1)
    restore_events: int = _setting(1_000_000, "Events in one restore or import.", least=1)
    restore_bytes: int = _setting(4 * 1024 * MIB, "Bytes of one restore or import.", least=1)
    attachment_bytes: int = _setting(4 * 1024 * MIB, "An attachment.", least=1)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings. Environment names are FOLDLOG_ and the field's name in capitals.

    A limit's is FOLDLOG_LIMIT_ and its name in capitals.
    """

    listen: str = _setting(
        "127.0.0.1:50551", "The address to serve at, as HOST:PORT; port 0 takes a free one."
    )
    workers: int = _setting(
        1,
        "Server processes that share the address, so that a machine's cores do; with PostgreSQL"
        " only. Quotas of calls and of watches are of each, and the ports of metrics_listen follow"
        " each other.",
        least=1,
    )
    tls_certificate_file: str = _setting(
        "",
        "The server's certificate with its chain, in PEM; empty means plaintext. A file that is"
        " replaced is used for the connections that follow.",
    )
    tls_key_file: str = _setting(
        "", "The certificate's key, in PEM; empty means that it is in the certificate's file."
    )
    tls_client_ca_file: str = _setting(
        "",
        "CAs in PEM; with them only clients that have a certificate of theirs are let in (mutual"
        " TLS).",
    )
    allow_plaintext: bool = _setting(
        False, "Let other machines reach the service, or its metrics, without TLS."
    )
    auth: str = _setting(
        "none",
        "How callers are told: by API keys, by the tokens of an identity provider, by either, or"
        " not at all; none is for addresses that only this machine reaches.",
        one_of=("none", "keys", "oidc", "keys,oidc"),
    )
    oidc_issuer: str = _setting("", "The issuer that tokens are to name.")
    oidc_audience: str = _setting("", "The audience that tokens are to be for.")
    oidc_jwks: str = _setting(
        "", "The issuer's public keys: a file of a JWKS, or its https:// address."
    )
    oidc_tenant_claim: str = _setting("tenant", "The claim that names a token's tenant.")
    oidc_role_claim: str = _setting(
        "role", "The claim that names its role: reader, writer or admin, or a list with one."
    )
    oidc_labels_claim: str = _setting(
        "labels", "The claim with the labels, an object, that its sessions are to bear, if any."
    )
    allow_anonymous: bool = _setting(
        False, "Let everybody in where other machines reach the address and auth is none."
    )
    oidc_leeway_s: float = _setting(
        30.0, "Seconds by which the issuer's clock may differ from this machine's."
    )
    quota_sessions: int = _setting(
        0, "Sessions that a tenant may have, unless its own quota says otherwise; 0: any number."
    )
    quota_bytes: int = _setting(
        0, "Bytes that a tenant may store, rows and attachments, in the same way."
    )
    quota_calls_per_s: int = _setting(
        0, "Calls, and batches of streams, that a tenant may make in a second, of each process."
    )
    quota_watches: int = _setting(
        0, "Watches that a tenant may have open at a time, with each process."
    )
    key_revocation_s: float = _setting(
        5.0,
        "Seconds within which a revoked key, or an expired token, stops working, watches and"
        " streams too.",
        least=0.1,
    )
    database_url: str = _setting(
        "sqlite:///foldlog.db",
        "The database: sqlite:///PATH, sqlite:///:memory: or postgresql://...",
    )
    listen_database_url: str = _setting(
        "",
        "A direct PostgreSQL address for LISTEN where database_url goes through a pooler;"
        " empty means database_url.",
    )
    row_level_security: str = _setting(
        "auto",
        "Whether the database is to keep tenants apart as well, which PostgreSQL does for a user"
        " let in with `foldlog migrate --service-user`: auto takes any user, required only such.",
        one_of=("auto", "required"),
    )
    object_directory: str = _setting(
        "",
        "The directory of large attachments, which several processes may share, or a URL such as"
        " s3://bucket/prefix, with foldlog[s3]; empty means beside the SQLite file, and with"
        " PostgreSQL none, so that large ones are refused.",
    )
    object_inline_bytes: int = _setting(
        256 * KIB, "The largest attachment that is kept in the database.", least=0
    )
    object_grace_s: float = _setting(
        86_400.0,
        "Seconds for which an attachment that was put or asked for is not collected, named or not;"
        " to be longer than any write takes.",
    )
    signing_key_file: str = _setting(
        "",
        "The file of the private key that heads are signed with, as `foldlog signing-key` makes it;"
        " empty means that none are signed.",
    )
    master_key_file: str = _setting(
        "",
        "A file of master keys, a line ID:BASE64 each, the one in use first; empty means that"
        " nothing new is encrypted.",
    )
    master_keys: str = _setting(
        "", "The same lines, in place of a file. A variable only.", is_secret=True
    )
    master_key_service: str = _setting(
        "",
        "MODULE:FACTORY of what wraps data keys in place of keys of our own, such as a client of a"
        " key management service.",
    )
    compression: str = _setting(
        "none",
        "How the bodies of new events are compressed: none, or zstd, with foldlog[zstd]; releases"
        " that do not know it, and installations without the extra, cannot read those.",
        one_of=("none", "zstd"),
    )
    allow_missing_master_keys: bool = _setting(
        False, "Serve although something is encrypted under a master key that is missing."
    )
    address_file: str = _setting(
        "", "A file to write the served address to, once it is served; empty means none."
    )
    check_mode: str = _setting(
        "warn",
        "What a check does unless the call says: off, warn or strict."
        " Anything else is reported once and means warn.",
    )
    fold_cache_bytes: int = _setting(256 * MIB, "Memory for cached folds.")
    body_cache_bytes: int = _setting(128 * MIB, "Memory for cached message bodies.")
    cache_idle_s: float = _setting(
        600.0,
        "Seconds, up to twice as many, after which what is cached of a session, and a message that"
        " was read, is forgotten if nobody asked for it meanwhile.",
        least=0.1,
    )
    reader_threads: int = _setting(4, "Threads that read from the database.", least=1)
    pool_size: int = _setting(8, "Database connections of one process, at most.", least=1)
    statement_timeout_s: float = _setting(
        30.0, "Seconds that PostgreSQL may take for one statement before it is ended.", least=0.1
    )
    commit_timeout_s: float = _setting(
        10.0,
        "Seconds that a write may wait for its turn, and PostgreSQL may take to commit it, before"
        " its callers are told that it is unavailable.",
        least=0.1,
    )
    receive_bytes: int = _setting(64 * MIB, "The largest gRPC message accepted.", least=4 * MIB)
    connections: int = _setting(
        10_000,
        "Connections at a time, and no more than the process may have files; further ones are"
        " closed at once.",
        least=1,
    )
    calls_per_connection: int = _setting(
        10_000, "Calls under way on one connection, watches too; further ones wait.", least=1
    )
    handshake_timeout_s: float = _setting(
        20.0,
        "Seconds within which a new connection is to begin to speak HTTP/2, and TLS before it.",
        least=0.1,
    )
    request_timeout_s: float = _setting(
        120.0,
        "Seconds within which the request of a call is to arrive whole; elements of streams may"
        " take any time.",
        least=0.1,
    )
    watch_buffer: int = _setting(
        1_000,
        "Events stored while a watch waits for its reader to take one, before it is ended as too"
        " slow.",
        least=1,
    )
    keepalive_s: float = _setting(
        30.0,
        "Seconds of silence after which a connection is asked whether anybody is there, and again"
        " until it counts as lost, with its watches.",
        least=0.1,
    )
    shutdown_grace_s: float = _setting(10.0, "Seconds that running calls get when stopping.")
    feed_poll_s: float = _setting(
        0.5, "Seconds between looks for other processes' events.", least=0.001
    )
    log_level: str = _setting(
        "info",
        "The least level that is logged.",
        one_of=("debug", "info", "warning", "error", "critical"),
    )
    log_format: str = _setting("text", "What a log line looks like.", one_of=("text", "json"))
    log_previews: bool = _setting(
        False, "Let previews of messages into logs and traces; no payload gets there otherwise."
    )
    metrics_listen: str = _setting(
        "", "The address to serve Prometheus metrics at, as HOST:PORT; empty means none."
    )
    tracing: bool = _setting(False, "Make OpenTelemetry spans.")
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Self:
        """Read FOLDLOG_* variables; an empty one counts as not set.

        Raises ValueError naming the variable that does not parse.
        """
        environment = os.environ if environment is None else environment
        given = _read(cls, environment)
        return cls(limits=Limits(**_read(Limits, environment)), **given)


def environment_of(settings: Settings) -> dict[str, str]:
    """Return the variables that say what the settings say, but for limits."""
    values = {each.environment_name: getattr(settings, each.name) for each in described()}
    return {name: str(value) for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class Setting:
    """What there is to know of one setting."""

    name: str
    environment_name: str
    default: Value
    says: str
    one_of: tuple[str, ...]
    least: float
    is_secret: bool = False  # no flag: other users of a machine see what is on a command line

    def parsed(self, text: str) -> Value:
        """Return the value that a text stands for. Raises ValueError that says what it is to be."""
        try:
            value = _parsed(self.default, text)
        except ValueError as error:
            raise ValueError(f"{self.environment_name} is to be {error}, not {text!r}") from None
        self.require_allowed(value)
        return value

    def require_allowed(self, value: Value) -> None:
        """Raise ValueError if the value is none of those allowed, or too small."""
        if self.one_of and value not in self.one_of:
            choice = ", ".join(self.one_of)
            raise ValueError(f"{self.environment_name} is to be one of {choice}, not {value!r}")
        if not isinstance(value, str) and value < self.least:
            raise ValueError(f"{self.environment_name} is to be at least {self.least}, not {value}")


def described(cls: type[Settings] | type[Limits] = Settings) -> tuple[Setting, ...]:
    """Return what there is to know of each setting, or of each limit, in order."""
    prefix = "FOLDLOG_LIMIT_" if cls is Limits else "FOLDLOG_"
    return tuple(
        Setting(each.name, prefix + each.name.upper(), cast(Value, each.default), **each.metadata)
        for each in fields(cls)
        if each.metadata
    )


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT, with an IPv6 host in brackets.

    Raises ValueError that says what an address is.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65_535:
        raise ValueError(f"an address is HOST:PORT, such as 127.0.0.1:50551, not {address!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_open(settings: Settings) -> bool:
    """Tell whether other machines reach the service, and it asks nobody who they are.

    Raises ValueError if its address is none.
    """
    host, _ = split_address(settings.listen)
    is_known = settings.auth != "none" or bool(settings.tls_client_ca_file)
    return not is_known and not is_loopback(host)


class AuthSettingsError(ValueError):
    """The settings do not say how callers are told."""


class UnguardedError(AuthSettingsError):
    """The settings would let everybody on the network in."""


def require_guarded(settings: Settings) -> None:
    """Raise UnguardedError if other machines reach the service, without a key and unasked for.

    Raises ValueError if the address is none.
    """
    if is_open(settings) and not settings.allow_anonymous:
        raise UnguardedError(
            f"{settings.listen} is reached from other machines, and auth is none: whoever reaches"
            " it would read and write every session. Make a key with `foldlog keys create` and"
            " serve with --auth keys, or say --allow-anonymous"
        )


def require_oidc(settings: Settings) -> None:
    """Raise AuthSettingsError unless it is said whose tokens are let in, and by which keys."""
    missing = [
        name
        for name in ("oidc_issuer", "oidc_audience", "oidc_jwks")
        if not getattr(settings, name)
    ]
    if missing:
        raise AuthSettingsError(f"auth {settings.auth} needs {', '.join(missing)} as well")


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches a host."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _read(cls: type[Settings] | type[Limits], environment: Mapping[str, str]) -> dict[str, Any]:
    return {
        each.name: each.parsed(environment[each.environment_name])
        for each in described(cls)
        if environment.get(each.environment_name)
    }


def _parsed(default: Value, text: str) -> Value:
    match default:
        case bool():
            if text.lower() not in {"0", "1", "true", "false", "yes", "no", "on", "off"}:
                raise ValueError("true or false")
            return text.lower() in {"1", "true", "yes", "on"}
        case int():
            return _number(int, text, "a whole number")
        case float():
            return _number(float, text, "a number")
    return text


def _number(kind: type[int] | type[float], text: str, what: str) -> int | float:
    try:
        return kind(text)
    except ValueError:
        raise ValueError(what) from None
