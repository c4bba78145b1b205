"""The calls of the client, each written once, without I/O. A module is loaded at its first use."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foldlog.client.operations import (
        anchoring,
        appending,
        attachments,
        changing,
        checking,
        files,
        reading,
        recovering,
        requests,
        sessions,
        watching,
    )

__all__ = [
    "anchoring",
    "appending",
    "attachments",
    "changing",
    "checking",
    "files",
    "reading",
    "recovering",
    "requests",
    "sessions",
    "watching",
]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
