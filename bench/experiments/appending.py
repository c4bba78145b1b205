"""Appends beside echoes, rows written by hand, and a bare group commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Final

from bench import wire
from bench.crew import Task
from bench.goals import Case, Experiment, Goal, quotient
from bench.ground import Ground
from bench.samples import Load
from bench.servers.bare import method
from bench.sessions import created
from bench.sources import Appends
from bench.tasks.calls import Calls
from bench.tasks.inserts import Inserts
from bench.tasks.streams import Stream

APPEND: Final = f"{wire.SERVICE}AppendEvents"
APPEND_STREAM: Final = f"{wire.SERVICE}AppendStream"
SESSIONS: Final = 16
WORKERS: Final = 16
TURN_WORKERS: Final = 4
IN_FLIGHT: Final = 32
SECONDS: Final = 1.5


def unary_cases(ground: Ground, sessions: int, hand_url: str) -> Mapping[str, Case]:
    """Return one append per call, and the same bytes echoed."""
    foldlog, echo = ground.foldlog, ground.echo
    ids = created(foldlog, sessions)
    sources = [Appends([each], seed=seed) for seed, each in enumerate(ids)]

    def appends() -> Sequence[Task]:
        return [Calls(foldlog.address, APPEND, sources, SECONDS)]

    def echoes() -> Sequence[Task]:
        return [Calls(echo.address, method("Call"), sources, SECONDS, insert_url=hand_url)]

    return {
        "echo and one INSERT" if hand_url else "echo": Load(
            ground.crew, echoes, ground.clocks(echo)
        ),
        "foldlog": Load(ground.crew, appends, ground.clocks(foldlog)),
    }


def many_sessions(ground: Ground, stack: ExitStack) -> Mapping[str, Case]:
    """One append per call, 16 sessions."""
    return unary_cases(ground, SESSIONS, "")


def one_session(ground: Ground, stack: ExitStack) -> Mapping[str, Case]:
    """One append per call, one session."""
    return unary_cases(ground, 1, ground.hand_url)


def one_stream(ground: Ground, stack: ExitStack) -> Mapping[str, Case]:
    """One message per element, 32 in flight."""
    foldlog, echo = ground.foldlog, ground.echo
    (session_id,) = created(foldlog, 1)

    def stream(address: str, name: str, is_echo: bool) -> Sequence[Task]:
        return [Stream(address, name, session_id, 1, SECONDS, 1, IN_FLIGHT, is_echo)]

    return {
        "stream echo": Load(
            ground.crew,
            lambda: stream(echo.address, method("Stream"), True),
            ground.clocks(echo),
        ),
        "foldlog": Load(
            ground.crew,
            lambda: stream(foldlog.address, APPEND_STREAM, False),
            ground.clocks(foldlog),
        ),
    }


def worker_cases(
    ground: Ground, workers: int, size: int, in_flight: int, *, with_group: bool
) -> Mapping[str, Case]:
    """Return workers, each with a stream of its own session, and with rows written by hand."""
    ids = created(ground.foldlog, workers)

    def streams(address: str, name: str) -> Sequence[Task]:
        return [
            Stream(address, name, each, seed, SECONDS, size, in_flight)
            for seed, each in enumerate(ids)
        ]

    def by_hand() -> Sequence[Task]:
        return [Inserts(ground.hand_url, seed, SECONDS) for seed in range(workers)]

    foldlog, group = ground.foldlog, ground.group if with_group else None
    cases: dict[str, Case] = {
        "by hand": Load(ground.crew, by_hand, ground.database_clock),
        "foldlog": Load(
            ground.crew,
            lambda: streams(foldlog.address, APPEND_STREAM),
            ground.clocks(foldlog),
        ),
    }
    if group is not None:
        cases["bare group commit"] = Load(
            ground.crew, lambda: streams(group.address, method("Stream")), ground.clocks(group)
        )
    return cases


def many_workers(ground: Ground, stack: ExitStack) -> Mapping[str, Case]:
    """16 workers on streams, one message per element, each awaited."""
    return worker_cases(ground, WORKERS, 1, 1, with_group=True)


def turns(ground: Ground, stack: ExitStack) -> Mapping[str, Case]:
    """A turn of four per element, 4 workers, many in flight."""
    return worker_cases(ground, TURN_WORKERS, 4, IN_FLIGHT, with_group=False)


ONE_CALL: Final = "one durable append per call"
EXPERIMENTS: Final = (
    Experiment(
        "unary-16",
        f"{ONE_CALL}, 16 sessions",
        many_sessions,
        (
            Goal(
                f"{ONE_CALL}, 16 sessions: rate",
                "bare gRPC echo of the same bytes",
                quotient("foldlog", "echo", "per_s"),
                least=0.7,
            ),
            Goal(
                f"{ONE_CALL}, 16 sessions: server CPU per append",
                "bare gRPC echo of the same bytes",
                quotient("foldlog", "echo", "server_us"),
                most=1.5,
            ),
        ),
        is_quick=True,
    ),
    Experiment(
        "unary-1",
        f"{ONE_CALL}, one session",
        one_session,
        (
            Goal(
                f"{ONE_CALL}, one session: rate",
                "echo, then one single-row INSERT, in sequence",
                quotient("foldlog", "echo and one INSERT", "per_s"),
                least=0.8,
            ),
        ),
        is_quick=True,
    ),
    Experiment(
        "stream-32",
        "one message per element over AppendStream, 32 in flight",
        one_stream,
        (
            Goal(
                "one message per element over AppendStream, 32 in flight: rate",
                "the same stream echoing",
                quotient("foldlog", "stream echo", "per_s"),
                least=0.7,
            ),
        ),
        is_quick=True,
    ),
    Experiment(
        "workers-16",
        "16 workers on streams, one message per element",
        many_workers,
        (
            Goal(
                "16 workers on streams, one message per element: messages per second",
                "the bare stream server with group commit",
                quotient("foldlog", "bare group commit", "messages_per_s"),
                least=0.75,
            ),
            Goal(
                "16 workers on streams, one message per element: messages per second",
                "hand-written INSERT in the workers' own processes",
                quotient("foldlog", "by hand", "messages_per_s"),
                least=0.36,
            ),
        ),
        is_quick=True,
    ),
    Experiment(
        "turns-4",
        "a turn of four per element over AppendStream, 4 workers, 32 in flight",
        turns,
        (
            Goal(
                "a turn of four per element over AppendStream, 4 workers: messages per second",
                "hand-written single-row INSERT per message in the workers' own processes",
                quotient("foldlog", "by hand", "messages_per_s"),
                least=1.0,
            ),
        ),
        is_quick=True,
    ),
)
