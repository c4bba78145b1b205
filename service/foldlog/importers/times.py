"""Times as files write them, in nanoseconds since 1970."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final, TypeGuard

from foldlog.codec import time_ns_of, time_to_proto
from foldlog.core.errors import InvalidFieldError

ISO: Final = re.compile(
    r"(\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d)(?:[.,](\d{1,9})\d*)?([Zz]|[+-]\d\d:?\d\d)?"
)
NS_PER_S: Final = 1_000_000_000
NS_PER_MS: Final = 1_000_000
# Seconds up to here, the year 5138; milliseconds above it, from 1973 on.
SECONDS_AT_MOST: Final = 100_000_000_000


def ns_of_iso(value: object) -> int | None:
    """Return a time in ISO 8601, or None if it is none. Without a zone it is UTC."""
    found = ISO.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    seconds, fraction, zone = found.groups()
    try:
        moment = datetime.fromisoformat(seconds + ("+00:00" if zone in (None, "Z", "z") else zone))
        whole = time_ns_of(moment.astimezone(UTC))
    except (ValueError, OverflowError):
        return None
    return in_range(whole + int((fraction or "").ljust(9, "0")))


def ns_of_ms(value: object) -> int | None:
    """Return a time in milliseconds since 1970, or None if it is none."""
    return in_range(int(value * NS_PER_MS)) if is_number(value) else None


def ns_of_any(value: object) -> int | None:
    """Return a time in ISO 8601, or in seconds or milliseconds since 1970, or None."""
    if not is_number(value):
        return ns_of_iso(value)
    scale = NS_PER_S if abs(value) < SECONDS_AT_MOST else NS_PER_MS
    if isinstance(value, int):
        return in_range(value * scale)
    # A double of today's seconds is good to a quarter of a microsecond.
    return in_range(round(value * scale / 1_000) * 1_000)


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a value is a JSON number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def in_range(time_ns: int) -> int | None:
    """Return the time, or None outside of the years 1 to 9999."""
    try:
        time_to_proto(time_ns)
    except InvalidFieldError:
        return None
    return time_ns
