"""What a client says of itself with every call."""

from __future__ import annotations

Metadata = tuple[tuple[str, str], ...]


def metadata_of(api_key: str) -> Metadata:
    """Return the metadata that carries a key; an empty key stands for none.

    Raises ValueError, which does not show the key, for what no metadata can carry.
    """
    if not api_key:
        return ()
    if not (api_key.isascii() and api_key.isprintable()) or api_key != api_key.strip():
        raise ValueError("an API key is printable ASCII without spaces around it")
    return (("authorization", f"Bearer {api_key}"),)
