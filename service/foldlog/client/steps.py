"""What an operation asks of whoever drives it: the client's logic is written once, without I/O.

An operation is a generator. It yields steps and is sent what came of each; what it returns is the
call's result. An emission is an operation that hands out values on its way. A blocking and an
asyncio driver perform the same steps.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar, cast

from foldlog.core.errors import FoldlogError

if TYPE_CHECKING:
    from google.protobuf.message import Message as ProtoMessage

    from foldlog.client.methods import Method


@dataclass(frozen=True, slots=True)
class Failure:
    """What came of a step that failed. A transient one may pass when it is tried again."""

    error: FoldlogError
    is_transient: bool = False
    delay_s: float = 0.0


class Stream(Protocol):
    """A stream of answers that is open."""

    def cancel(self) -> object:
        """End it from this side. Does no harm to one that has ended."""


@dataclass(frozen=True, slots=True)
class Unary:
    """Send one request; comes to its answer or a Failure."""

    method: Method[Any]
    request: ProtoMessage
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Upload:
    """Send a stream of requests; comes to the one answer or a Failure.

    What the iterator raises is raised, and the call is cancelled, so that half a stream is never
    taken for a whole one.
    """

    method: Method[Any]
    requests: Callable[[], Iterator[ProtoMessage]]
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Open:
    """Send one request; comes to a Stream of its answers. No timeout means none."""

    method: Method[Any]
    request: ProtoMessage
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Receive:
    """Wait for the next answer of a stream; comes to it, to None at the end, or to a Failure."""

    stream: Stream


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait."""

    delay_s: float


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Emit(Generic[T]):
    """Hand one value to whoever iterates."""

    value: T


Step: TypeAlias = Unary | Upload | Open | Receive | Sleep
Operation: TypeAlias = Generator[Step, Any, T]
Emission: TypeAlias = Generator[Step | Emit[T], Any, None]


@dataclass(frozen=True, slots=True)
class Done:
    """An operation has returned."""

    result: Any


class Run:
    """One run of an operation: a driver sets `outcome` or `error` and asks for the next step."""

    __slots__ = ("_operation", "error", "outcome")

    def __init__(self, operation: Generator[Any, Any, Any]) -> None:
        self._operation = operation
        self.outcome: object = None
        self.error: FoldlogError | None = None

    def advance(self) -> Step | Emit[Any] | Done:
        """Give the operation what came of the last step; return the next one, or the end."""
        outcome, error = self.outcome, self.error
        self.outcome = self.error = None
        try:
            if error is not None:
                return cast(Step, self._operation.throw(error))
            return cast(Step, self._operation.send(outcome))
        except StopIteration as stop:
            return Done(stop.value)

    def close(self) -> None:
        """End the operation where it stands; it cancels what it has open."""
        self._operation.close()
