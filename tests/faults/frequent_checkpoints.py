"""Foldlog, with a checkpoint of a session every few rows instead of every thousand."""

from __future__ import annotations

from foldlog.application import lanes

from tests.faults.unsafe.serving import serve_with

EVERY_ROWS = 15

if __name__ == "__main__":
    serve_with(lanes, "CHECKPOINT_ROWS", EVERY_ROWS)
