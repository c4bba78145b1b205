"""Splitting what is too long for one call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

from google.protobuf.message import Message as ProtoMessage

from foldlog.client.state import SendLimits
from foldlog.core.errors import TooLargeError

M = TypeVar("M", bound=ProtoMessage)
# A tag and a length go before each element of a repeated field.
FRAME_BYTES: Final = 6


def split(elements: Iterable[M], limits: SendLimits) -> Iterator[list[M]]:
    """Yield the elements in consecutive batches within the limits.

    An element that alone is over the limit stands alone.
    """
    batch: list[M] = []
    size_bytes = 0
    for element in elements:
        added = element.ByteSize() + FRAME_BYTES
        full = len(batch) >= limits.batch_events or size_bytes + added > limits.batch_bytes
        if batch and full:
            yield batch
            batch, size_bytes = [], 0
        batch.append(element)
        size_bytes += added
    if batch:
        yield batch


def batches_of(field: str, elements: Sequence[M], limits: SendLimits) -> list[list[M]]:
    """Return the batches; one that is empty if there is nothing, for the service to refuse.

    Raises TooLargeError for an element that the service would refuse after earlier batches were
    already written. One that goes alone is left for the service to judge, if it can be received.
    """
    batches = list(split(elements, limits)) or [[]]
    limit = limits.batch_bytes if len(batches) > 1 else limits.request_bytes
    for index, element in enumerate(elements):
        require_fits(f"{field}[{index}]", element.ByteSize(), limit)
    return batches


def require_fits(field: str, size: int, limit: int) -> None:
    """Raise TooLargeError if the size is over the limit."""
    if size > limit:
        raise TooLargeError(field=field, size=size, limit=limit)
