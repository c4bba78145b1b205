"""Stores for the tests of persistence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from foldlog.persistence.store import Store

from tests.persistence.stores import BACKENDS, POSTGRES, fresh_store, fresh_url
from tests.postgres import database


@pytest.fixture(params=BACKENDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A new, empty store of each kind."""
    with fresh_store(request.param, tmp_path) as store:
        yield store


@pytest.fixture(params=POSTGRES)
def postgres_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A new, empty store in PostgreSQL, plain and partitioned."""
    with fresh_store(request.param, tmp_path) as store:
        yield store


@pytest.fixture(params=POSTGRES)
def postgres_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a new, migrated database, plain and partitioned."""
    with fresh_url(request.param, tmp_path) as url:
        yield url


@pytest.fixture
def plain_url() -> Iterator[str]:
    """The URL of a new, migrated, plain database."""
    with database() as url:
        yield url
