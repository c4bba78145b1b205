"""Every setting of the service, in one place, from the environment or given by flags."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Self

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True)
class Limits:
    """The sizes the service accepts; each error names the size and the limit."""

    event_bytes: int = 7 * MIB // 2
    batch_events: int = 1_000
    batch_bytes: int = 7 * MIB // 2
    json_depth: int = 128
    session_id_bytes: int = 512
    request_id_bytes: int = 128
    custom_keys: int = 8
    custom_key_bytes: int = 128
    labels: int = 64
    label_bytes: int = 256
    metadata_bytes: int = 256 * KIB
    page_bytes: int = 3 * MIB
    restore_events: int = 1_000_000
    restore_bytes: int = 4 * 1024 * MIB


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings. Environment names are FOLDLOG_ and the field's name in capitals."""

    listen: str = "127.0.0.1:50551"
    database_url: str = "sqlite:///foldlog.db"
    listen_database_url: str = ""
    address_file: str = ""
    check_mode: str = "warn"
    fold_cache_bytes: int = 256 * MIB
    body_cache_bytes: int = 128 * MIB
    reader_threads: int = 4
    pool_size: int = 8
    receive_bytes: int = 64 * MIB
    watch_buffer: int = 1_000
    shutdown_grace_s: float = 10.0
    feed_poll_s: float = 0.5
    log_level: str = "info"
    log_format: str = "text"
    log_previews: bool = False
    metrics_listen: str = ""
    tracing: bool = False
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Self:
        """Read FOLDLOG_* variables. Raises ValueError naming the variable that does not parse."""
        environment = os.environ if environment is None else environment
        given = _read(cls, environment)
        limits = replace(Limits(), **_read(Limits, environment, "LIMIT_"))
        return replace(cls(), limits=limits, **given)


def _read(cls: type, environment: Mapping[str, str], prefix: str = "") -> dict[str, object]:
    defaults = cls()
    given: dict[str, object] = {}
    for each in fields(cls):
        name = f"FOLDLOG_{prefix}{each.name.upper()}"
        if each.name != "limits" and name in environment:
            given[each.name] = _parse(name, environment[name], getattr(defaults, each.name))
    return given


def _parse(name: str, text: str, default: object) -> object:
    if isinstance(default, bool):
        if text.lower() not in {"0", "1", "true", "false", "yes", "no", "on", "off"}:
            raise ValueError(f"{name} is to be true or false, not {text!r}")
        return text.lower() in {"1", "true", "yes", "on"}
    try:
        return type(default)(text)  # type: ignore[call-arg]
    except ValueError:
        raise ValueError(f"{name} is to be a {type(default).__name__}, not {text!r}") from None
