"""Loaded by a server under test as its sitecustomize: its wall clock is off by what a file says."""

import os
import time

_OFFSET_FILE = os.environ.get("CLOCK_OFFSET_FILE", "")
_real_time, _real_time_ns = time.time, time.time_ns


def _offset_ms() -> int:
    try:
        with open(_OFFSET_FILE) as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


def _time() -> float:
    return _real_time() + _offset_ms() / 1000


def _time_ns() -> int:
    return _real_time_ns() + _offset_ms() * 1_000_000


time.time, time.time_ns = _time, _time_ns
