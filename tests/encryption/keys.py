"""Master keys of the tests."""

from __future__ import annotations

from base64 import b64encode


def master_key(key_id: str) -> str:
    """Return a master key as a line of a file: the same for the same id."""
    return f"{key_id}:{b64encode(key_id.encode().ljust(32, b'.')).decode()}"


MASTER_KEY = master_key("first")
