"""Doctor's look at master keys: whether they can be used, and open all that is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from foldlog.cli.doctor.finding import Finding, fault, ok, warning
from foldlog.settings import Settings

SUBJECT = "encryption"
WITHOUT = "What is encrypted under it cannot be read."

Rows = Callable[[tuple[str, list[object]]], list[tuple[Any, ...]]]


def encryption(given: Settings, rows: Rows) -> Iterator[Finding]:
    """Look at the master keys that the settings name, and at those that a database needs.

    Says nothing where there is neither.
    """
    from foldlog.encryption.opening import WHERE, master_keys_of
    from foldlog.persistence.errors import DriverMissingError

    try:
        masters = master_keys_of(given)
    except (ValueError, DriverMissingError) as error:
        yield fault(SUBJECT, str(error), "The service cannot start.", f"Correct {WHERE}.")
        return
    needed = _key_ids(rows)
    missing = [each for each in needed if masters is None or not masters.has(each)]
    if masters is not None:
        yield ok(SUBJECT, f"what is written is encrypted under {masters.current_id!r}")
    for key_id in missing:
        said = warning if given.allow_missing_master_keys and masters is not None else fault
        refusal = "" if said is warning else " The service does not start."
        yield said(
            SUBJECT, f"the master key {key_id!r} is missing", WITHOUT + refusal, f"Set {WHERE}."
        )
    if masters is not None and needed and not missing and needed != [masters.current_id]:
        others = ", ".join(each for each in needed if each != masters.current_id)
        yield ok(SUBJECT, f"some of it still needs {others}; see: foldlog master-key list")


def _key_ids(rows: Rows) -> list[str]:
    from foldlog.persistence.queries import distinct_values

    tables = ("foldlog_session_keys", "foldlog_objects")
    return sorted({each for table in tables for each in distinct_values(rows, table, "key_id")})
