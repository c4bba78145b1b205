"""Appends while somebody watches, and the feed behind many writers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Final

from foldlog.v1.service_pb2 import GetSessionRequest

from bench.crew import Task
from bench.experiments.appending import APPEND, SESSIONS
from bench.goals import Case, Experiment, Goal, quotient
from bench.ground import Ground
from bench.samples import MILLI, Load, Sample, percentile
from bench.sessions import created
from bench.sources import Appends
from bench.tasks.calls import Calls
from bench.tasks.following import Feed, Watches
from bench.tasks.paced import Paced
from tests.served import Served

WATCHES: Final = 1_000
PACE_PER_S: Final = 4.0
PACED_S: Final = 5.0
SECONDS: Final = 2.0


def watched(ground: Ground, stack: ExitStack) -> Mapping[str, Case]:
    """Appends to one session, each after the watches had time to get the one before."""
    return {f"{count:,} watches": watched_case(ground, count) for count in (1, WATCHES)}


def watched_case(ground: Ground, count: int) -> Case:
    """Return appends under so many watches of a session of its own."""
    foldlog = ground.foldlog
    (session_id,) = created(foldlog, 1)

    def appends() -> Sequence[Task]:
        return [Paced(foldlog.address, APPEND, [Appends([session_id])], PACED_S, PACE_PER_S)]

    def watches() -> Sequence[Task]:
        return [Watches(foldlog.address, session_id, count, PACED_S)]

    return Load(ground.crew, appends, ground.clocks(foldlog), watches)


def followed(ground: Ground, stack: ExitStack) -> Mapping[str, Case]:
    """16 writers at full speed, without and with a reader of the feed."""
    served = ground.serve(closed_by=stack)
    ids = created(served, SESSIONS)
    sources = [Appends([each], seed=seed) for seed, each in enumerate(ids)]

    def appends() -> Sequence[Task]:
        return [Calls(served.address, APPEND, sources, SECONDS)]

    alone = Load(ground.crew, appends, ground.clocks(served))
    with_feed = Load(
        ground.crew, appends, ground.clocks(served), lambda: [Feed(served.address, SECONDS)]
    )

    def behind() -> Sample:
        found, (feed,) = with_feed.run()
        lag_ms = percentile(feed.latencies_s, 0.99) * MILLI
        return {**found, "lag_ms": lag_ms, "missed": missed(served, feed.facts)}

    return {"writers alone": alone, "writers and the feed": behind}


def missed(served: Served, facts: Mapping[str, float]) -> float:
    """Return how many events the feed did not show, those at the ends of sessions too."""
    total = facts["missed"]
    for session_id, last in facts.items():
        if session_id != "missed":
            asked = GetSessionRequest(session_id=session_id)
            total += served.stub.GetSession(asked).session.next_seq - 1 - last
    return total


FEED: Final = "the global feed behind 16 writers"
EXPERIMENTS: Final = (
    Experiment(
        "watches",
        f"an append while one session is watched, {PACE_PER_S:g} a second",
        watched,
        (
            Goal(
                "1,000 watches of one session: median latency of an append",
                "one watch",
                quotient("1,000 watches", "1 watches", "p50_ms"),
                most=1.2,
            ),
        ),
        rounds=3,
    ),
    Experiment(
        "feed",
        FEED,
        followed,
        (
            Goal(
                f"{FEED}: events missed",
                "",
                lambda each: each["writers and the feed"]["missed"],
                most=0,
                unit="events",
            ),
            Goal(
                f"{FEED}: p99 of the lag",
                "",
                lambda each: each["writers and the feed"]["lag_ms"],
                most=100,
                unit="ms",
            ),
            Goal(
                f"{FEED}: the writers' rate",
                "the writers alone",
                quotient("writers and the feed", "writers alone", "per_s"),
                least=0.95,
            ),
        ),
        rounds=5,
    ),
)
