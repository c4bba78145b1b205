"""Foldlog, but something is kept of each call."""

from __future__ import annotations

from foldlog.server import handlers

from tests.faults.unsafe.serving import serve_with

KEPT_BYTES = 40_000
kept: list[bytearray] = []
honest = handlers.require_decoded


def hoarding(request: object) -> None:
    """Keep something, then look whether a request decoded."""
    kept.append(bytearray(b"x") * KEPT_BYTES)
    honest(request)


if __name__ == "__main__":
    serve_with(handlers, "require_decoded", hoarding)
