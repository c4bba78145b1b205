"""Values of columns as they are meant to be: anything else is damage, and told as such."""

from __future__ import annotations

import json
from uuid import UUID

from foldlog.persistence.errors import StoreDamagedError
from foldlog.persistence.rows import NO_STATE, NO_TOPIC

ID_BYTES = 16
NOBODY = UUID(int=0)  # whose a row is that bears no aggregate id


def id_of(key: object) -> UUID:
    """Return an aggregate id kept as bytes. Raises StoreDamagedError for what is none."""
    if not isinstance(key, bytes) or len(key) != ID_BYTES:
        raise StoreDamagedError("an aggregate id is damaged")
    return UUID(bytes=key)


def version_of(version: object) -> int:
    """Return a row's version. Raises StoreDamagedError for what is none."""
    if not isinstance(version, int) or version < 0:
        raise StoreDamagedError("a version is damaged")
    return version


def contents_of(topic: object, state: object) -> tuple[str, bytes]:
    """Return a row's topic and state; of a row that has not both, what stands for lost ones."""
    if isinstance(topic, str) and isinstance(state, bytes):
        return topic, state
    return NO_TOPIC, NO_STATE


def labels_of(text: str) -> dict[str, str]:
    """Return labels kept as a JSON object. Raises StoreDamagedError for what is none."""
    try:
        labels = json.loads(text)
    except (ValueError, TypeError):
        labels = None
    if not isinstance(labels, dict) or not all(isinstance(each, str) for each in labels.values()):
        raise StoreDamagedError("labels are damaged")
    return labels
