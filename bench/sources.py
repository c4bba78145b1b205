"""Where load generators take their requests from: values that are sent to workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, repeat
from typing import Protocol
from uuid import uuid4

from foldlog.v1.service_pb2 import ForkSessionRequest

from bench import wire


class Source(Protocol):
    """Requests without end."""

    def __iter__(self) -> Iterator[bytes]:
        """Yield the requests."""
        ...


@dataclass(frozen=True, slots=True)
class Appends:
    """Appends of so many messages each, to the sessions in turn."""

    session_ids: Sequence[str]
    size: int = 1
    seed: int = 1

    def __iter__(self) -> Iterator[bytes]:
        own = [
            wire.appends(each, self.size, self.seed + place)
            for place, each in enumerate(self.session_ids)
        ]
        while True:
            for each in own:
                yield next(each)


@dataclass(frozen=True, slots=True)
class Forks:
    """Forks of one session at a seq, into new sessions."""

    session_id: str
    at_seq: int

    def __iter__(self) -> Iterator[bytes]:
        prefix = uuid4().hex
        for number in count():
            yield ForkSessionRequest(
                session_id=self.session_id,
                request_id=f"{prefix}{number}",
                child_session_id=f"{prefix}-{number}",
                at_seq=self.at_seq,
            ).SerializeToString()


@dataclass(frozen=True, slots=True)
class Same:
    """The same request again and again."""

    request: bytes

    def __iter__(self) -> Iterator[bytes]:
        return repeat(self.request)
