"""Values of columns as they are meant to be: anything else is damage, and told as such."""

from __future__ import annotations

import json
from uuid import UUID

from foldlog.persistence.errors import StoreDamagedError

ID_BYTES = 16


def id_of(key: object) -> UUID:
    """Return an aggregate id kept as bytes. Raises StoreDamagedError for what is none."""
    if not isinstance(key, bytes) or len(key) != ID_BYTES:
        raise StoreDamagedError("an aggregate id is damaged")
    return UUID(bytes=key)


def labels_of(text: str) -> dict[str, str]:
    """Return labels kept as a JSON object. Raises StoreDamagedError for what is none."""
    try:
        labels = json.loads(text)
    except (ValueError, TypeError):
        labels = None
    if not isinstance(labels, dict) or not all(isinstance(each, str) for each in labels.values()):
        raise StoreDamagedError("labels are damaged")
    return labels
