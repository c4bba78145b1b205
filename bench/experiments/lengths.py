"""What is to cost the same however long the session: appends, forks, incremental checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Final

from foldlog.codec import message_from_proto
from foldlog.core.digest import prefix_digest
from foldlog.v1.check_pb2 import PrefixDigest
from foldlog.v1.service_pb2 import CheckRequestRequest

from bench import encoding, workload
from bench.crew import Task
from bench.experiments.appending import APPEND, SESSIONS
from bench.goals import Case, Experiment, Goal, quotient
from bench.ground import Ground
from bench.samples import Load
from bench.servers.bare import method
from bench.sessions import grown
from bench.sources import Appends, Forks, Same, Source
from bench.tasks.calls import Calls
from bench.wire import SERVICE

FORK: Final = f"{SERVICE}ForkSession"
CHECK: Final = f"{SERVICE}CheckRequest"
SECONDS: Final = 1.0
SHORT: Final = 100
LONG: Final = 10_000
# How many sessions of a length are appended to in turn, so that short ones stay short.
SHARED: Final = {10: 100, 1_000: 10, 100_000: 1}


def in_sequence(ground: Ground, name: str, source: Source) -> Case:
    """Return calls of one source, one after the other."""

    def tasks() -> Sequence[Task]:
        return [Calls(ground.foldlog.address, name, [source], SECONDS)]

    return Load(ground.crew, tasks, ground.clocks(ground.foldlog))


def appends(ground: Ground, stack: ExitStack) -> Mapping[str, Case]:
    """Appends to sessions of three lengths."""
    cases: dict[str, Case] = {}
    for length, count in SHARED.items():
        ids = [grown(ground.foldlog, length, seed) for seed in range(count)]
        cases[f"{length:,} events"] = in_sequence(ground, APPEND, Appends(ids))
    return cases


def forks(ground: Ground, stack: ExitStack) -> Mapping[str, Case]:
    """Forks at the middle of sessions of two lengths, beside appends."""
    cases: dict[str, Case] = {}
    for length in (SHORT, LONG):
        session_id = grown(ground.foldlog, length)
        cases[f"fork of {length:,}"] = in_sequence(ground, FORK, Forks(session_id, length // 2))
        cases[f"append to {length:,}"] = in_sequence(ground, APPEND, Appends([session_id]))
    return cases


def incremental(session_id: str, length: int) -> bytes:
    """Return the check of a request whose last message is new to its sender."""
    messages = [encoding.message(each) for each in workload.messages(length)]
    known = [message_from_proto(each) for each in messages[:-1]]
    count, digest, leading_system = prefix_digest(known)
    return CheckRequestRequest(
        session_id=session_id,
        messages=messages[-1:],
        prefix=PrefixDigest(count=count, digest=digest, leading_system=leading_system),
        min_next_seq=length,
    ).SerializeToString()


def checks(ground: Ground, stack: ExitStack) -> Mapping[str, Case]:
    """Incremental checks of sessions of two lengths, and the same bytes echoed."""
    requests = {
        length: incremental(grown(ground.foldlog, length), length) for length in (SHORT, LONG)
    }

    def calling(address: str, name: str, request: bytes) -> Callable[[], Sequence[Task]]:
        return lambda: [Calls(address, name, [Same(request)] * SESSIONS, SECONDS)]

    foldlog, echo = ground.foldlog, ground.echo
    cases: dict[str, Case] = {
        f"check of {length:,}": Load(
            ground.crew, calling(foldlog.address, CHECK, request), ground.clocks(foldlog)
        )
        for length, request in requests.items()
    }
    echoing = calling(echo.address, method("Call"), requests[LONG])
    cases["echo"] = Load(ground.crew, echoing, ground.clocks(echo))
    return cases


EXPERIMENTS: Final = (
    Experiment(
        "flat",
        "append to a session of 10, 1,000, 100,000 events",
        appends,
        tuple(
            Goal(
                f"append to a session of {length} events: median latency",
                "the same to a session of 10 events",
                quotient(f"{length} events", "10 events", "p50_ms"),
                most=1.1,
            )
            for length in ("1,000", "100,000")
        ),
        rounds=7,
    ),
    Experiment(
        "fork",
        "fork at the middle of a session",
        forks,
        (
            Goal(
                "fork at the middle of a 10,000-message session: median latency",
                "one append to it",
                quotient("fork of 10,000", "append to 10,000", "p50_ms"),
                most=1.2,
            ),
            Goal(
                "fork at the middle of a 10,000-message session: median latency",
                "fork at the middle of 100 messages",
                quotient("fork of 10,000", "fork of 100", "p50_ms"),
                most=1.15,
            ),
        ),
    ),
    Experiment(
        "check",
        "incremental CheckRequest, min_next_seq given, 16 at a time",
        checks,
        (
            Goal(
                "incremental CheckRequest on a 10,000-message session: rate",
                "bare gRPC echo of the same bytes",
                quotient("check of 10,000", "echo", "per_s"),
                least=0.7,
            ),
            Goal(
                "incremental CheckRequest on a 10,000-message session: rate",
                "the same on 100 messages",
                quotient("check of 10,000", "check of 100", "per_s"),
                least=0.9,
            ),
        ),
    ),
)
