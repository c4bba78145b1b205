"""Memory that was let go, given back to the system."""

from __future__ import annotations

import ctypes


def give_memory_back() -> None:
    """Let the system have what nothing of this process uses; the C library keeps it otherwise.

    Only glibc has a call for it.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
