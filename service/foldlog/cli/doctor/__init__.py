"""What is wrong with a setup, and how to mend it. Nothing here writes anything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from foldlog.cli.doctor.environment import packages, python, settings
from foldlog.cli.doctor.finding import Finding, Severity, fault
from foldlog.settings import Settings

__all__ = ["Finding", "Severity", "findings"]


def findings(given: Settings, address: str) -> Iterator[Finding]:
    """Look at Python, packages, settings, the database and the service, one after the other."""
    yield from python()
    yield from packages(given)
    yield from settings(given)
    yield from _database(given)
    from foldlog.cli.doctor.service import service

    yield from service(address)


def _database(given: Settings) -> Iterator[Finding]:
    url = given.database_url
    if url.startswith(("postgresql://", "postgres://")):
        from foldlog.cli.doctor.postgres import postgres

        yield from postgres(given)
    elif url == "sqlite:///:memory:":
        return
    elif url.startswith("sqlite:///"):
        from foldlog.cli.doctor.sqlite import sqlite_file

        yield from sqlite_file(Path(url.removeprefix("sqlite:///")), given)
    else:
        yield fault(
            "database",
            f"{url.split(':', 1)[0]!r} is no kind of database",
            "The service cannot start.",
            "Give sqlite:///PATH, sqlite:///:memory: or postgresql://... as FOLDLOG_DATABASE_URL.",
        )
