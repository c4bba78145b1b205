"""Trying again: how long, how often, and after what."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from foldlog.client.steps import Failure, Operation, Sleep, Unary, Upload

if TYPE_CHECKING:
    from google.protobuf.message import Message as ProtoMessage

    from foldlog.client.methods import Answer, Method


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff: the first delay doubled up to the longest, each cut by up to half."""

    first_delay_s: float = 0.05
    longest_delay_s: float = 2.0


class Attempts:
    """The attempts of one call: each failure is either waited out or raised.

    A call's attempts share its timeout. Those of a watch go on as long as no outage outlasts it:
    each success starts it anew. Without a policy the first failure is raised.
    """

    def __init__(
        self,
        policy: RetryPolicy | None,
        timeout_s: float | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._policy = policy
        self._timeout_s = timeout_s
        self._clock = clock
        self._jitter = jitter
        self._begin()

    def _begin(self) -> None:
        self._started = self._clock()
        self._failures = 0

    @property
    def remaining_s(self) -> float:
        """How much of the timeout is left: never less than 0."""
        if self._timeout_s is None:
            return float("inf")
        return max(0.0, self._started + self._timeout_s - self._clock())

    def succeeded(self) -> None:
        """Begin anew: what fails from now on is another outage."""
        if self._failures:
            self._begin()

    def failed(self, failure: Failure) -> float:
        """Return how long to wait before the next attempt, or raise the failure's error."""
        self._failures += 1
        if self._policy is None or not failure.is_transient:
            raise failure.error
        delay_s = max(self._backoff_s(self._policy), failure.delay_s)
        if delay_s >= self.remaining_s:
            failure.error.add_note(f"gave up after {self._failures} attempts")
            raise failure.error
        return delay_s

    def _backoff_s(self, policy: RetryPolicy) -> float:
        doublings = min(self._failures - 1, 32)
        whole = min(policy.first_delay_s * 2**doublings, policy.longest_delay_s)
        return float(whole * (1 - self._jitter() / 2))

    def after(self, failure: Failure) -> Operation[None]:
        """Wait before the next attempt, or raise the failure's error."""
        yield Sleep(self.failed(failure))


def unary(attempts: Attempts, method: Method[Answer], request: ProtoMessage) -> Operation[Answer]:
    """Send a request until it is answered, refused, or out of time.

    Each attempt sends the same request, so a write that carries a request id is made once.
    """
    while True:
        outcome = yield Unary(method, request, attempts.remaining_s)
        if not isinstance(outcome, Failure):
            return cast("Answer", outcome)
        yield from attempts.after(outcome)


def upload(
    attempts: Attempts,
    method: Method[Answer],
    requests: Callable[[], Iterator[Any]],
    *,
    may_repeat: bool,
) -> Operation[Answer]:
    """Send a stream of requests, from its beginning at each attempt if it can be made again."""
    while True:
        outcome = yield Upload(method, requests, attempts.remaining_s)
        if not isinstance(outcome, Failure):
            return cast("Answer", outcome)
        if not may_repeat:
            raise outcome.error
        yield from attempts.after(outcome)
