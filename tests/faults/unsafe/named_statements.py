"""Foldlog, but it prepares its insert by name behind a pooler too."""

from __future__ import annotations

from foldlog.persistence.postgres.connections import PooledConnection

from tests.faults.unsafe.serving import serve_with

if __name__ == "__main__":
    serve_with(PooledConnection, "is_direct", True)
