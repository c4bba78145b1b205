"""Foldlog beside the stores of other frameworks: turns, loads and forks."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, Final

import foldlog

from bench.crew import Tally
from bench.experiments.lengths import FORK
from bench.experiments.reading import Restarted
from bench.goals import Case, Experiment, Goal, Missing, Round
from bench.ground import Ground
from bench.samples import Load, Sample, sample
from bench.sessions import grown
from bench.sources import Forks
from bench.tasks.turns import ClientTurns
from tests.served import Served

ROOT: Final = Path(__file__).resolve().parents[2]
PYTHON: Final = ROOT / ".venv-bench" / "bin" / "python"
WORKERS: Final = 16
LENGTH: Final = 1_000
LONG: Final = 10_000
SECONDS: Final = 2.5
# In the program's words, and in people's.
PEERS: Final = {
    "by_hand": "by hand",
    "claude": "Claude Agent SDK",
    "openai": "OpenAI Agents",
    "adk": "Google ADK",
    "langgraph_saver": "LangGraph, saver alone",
    "langgraph": "LangGraph, graph",
    "langgraph_delta": "LangGraph, DeltaChannel",
}
LANGGRAPH: Final = [name for name in PEERS.values() if name.startswith("LangGraph")]


class PeerError(RuntimeError):
    """A store could not do what was asked. The message is its own."""


class Peer:
    """One of the stores, in a process that has its framework, on a database of its own."""

    def __init__(self, name: str, url: str) -> None:
        self._process = subprocess.Popen(
            [PYTHON, "-m", "bench.peers", name, url],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, question: str, number: float = 0) -> Any:
        """Ask something and return the answer. Raises PeerError."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([question, number]), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        answer = json.loads(line) if line else {"error": "the process ended"}
        if "error" in answer:
            raise PeerError(answer["error"])
        return answer["answer"]

    def append(self) -> Sample:
        """Append turns with 16 workers."""
        return sample([Tally(**each) for each in self.ask("append", SECONDS)], {})

    def timed(self, question: str) -> Sample:
        """Have the peer do something and time it."""
        return {"seconds": self.ask(question)}

    def close(self) -> None:
        """End it."""
        self._process.communicate()


Peers = Mapping[str, Peer | Missing]


def peers(ground: Ground, workers: int) -> Peers:
    """Return every peer with its sessions: those of workers, or the long one if there are none.

    Where one cannot be had, it is said why.
    """
    started = ground.once("peers", partial(_started, ground))
    return ground.once(f"peers of {workers}", lambda _: _asked(started, "grow", workers))


def _started(ground: Ground, stack: ExitStack) -> Peers:
    if not PYTHON.exists():
        missing = Missing("its packages are not there: `make bench` installs them")
        return dict.fromkeys(PEERS.values(), missing)
    started = {
        called: stack.enter_context(closing(Peer(name, ground.database())))
        for name, called in PEERS.items()
    }
    return _asked(started, "prepare", 0)


def _asked(given: Peers, question: str, number: int) -> Peers:
    """Ask each peer the same, and leave out those that cannot."""
    found: dict[str, Peer | Missing] = {}
    for name, each in given.items():
        found[name] = each
        try:
            if isinstance(each, Peer):
                print(f"{name}, ", end="", flush=True, file=sys.stderr)
                each.ask(question, number)
        except PeerError as error:
            found[name] = Missing(str(error))
    return found


def cases_of(peers: Peers, ask: Callable[[Peer], Sample]) -> dict[str, Case | Missing]:
    """Return a case for each peer that is there."""
    return {
        name: each if isinstance(each, Missing) else partial(ask, each)
        for name, each in peers.items()
    }


def turns(ground: Ground, stack: ExitStack) -> Mapping[str, Case | Missing]:
    """A turn of four per call, 16 processes, a session of 1,000 messages each."""
    foldlog_ids = [grown(ground.foldlog, LENGTH, seed) for seed in range(WORKERS)]
    address = ground.foldlog.address
    tasks = [ClientTurns(address, each, seed, SECONDS) for seed, each in enumerate(foldlog_ids)]
    append = Load(ground.crew, lambda: tasks, ground.clocks(ground.foldlog))
    return {"foldlog": append} | cases_of(peers(ground, WORKERS), Peer.append)


def loads(ground: Ground, stack: ExitStack) -> Mapping[str, Case | Missing]:
    """A session of 10,000 messages, as objects."""
    served = ground.serve(closed_by=stack)
    session_id = grown(served, LONG)
    restarted = Restarted(served)
    client = stack.enter_context(foldlog.Client(served.address))
    session = client.session(session_id)

    def read() -> Sample:
        started = time.perf_counter()
        count = len(session.messages())
        taken = time.perf_counter() - started
        assert count == LONG
        return {"seconds": taken}

    def cold() -> Sample:
        restarted.restart()
        session.info()
        return read()

    own: dict[str, Case | Missing] = {"foldlog, cold": cold, "foldlog, again": read}
    stored = peers(ground, 0)
    return own | cases_of(stored, lambda peer: peer.timed("load"))


def forks(ground: Ground, stack: ExitStack) -> Mapping[str, Case | Missing]:
    """A fork at the middle of a session of 10,000 messages."""
    served = ground.foldlog
    forking = iter(Forks(grown(served, LONG), LONG // 2))
    fork = forker(served, forking)
    fork()
    stored = peers(ground, 0)
    return {"foldlog": fork} | cases_of(stored, lambda peer: peer.timed("fork"))


def forker(served: Served, forking: Any) -> Case:
    """Return the median of a few forks."""
    call: Any = served.channel.unary_unary(FORK)

    def fork() -> Sample:
        taken = []
        for _ in range(9):
            started = time.perf_counter()
            call(next(forking))
            taken.append(time.perf_counter() - started)
        return {"seconds": sorted(taken)[len(taken) // 2]}

    return fork


def faster(names: list[str], own: str, figure: str, *, is_rate: bool) -> Callable[[Round], float]:
    """Return by how much Foldlog is ahead of the best of some peers."""

    def ratio(each: Round) -> float:
        others = [each[name][figure] for name in names if name in each]
        if is_rate:
            return each[own][figure] / max(others)
        return min(others) / each[own][figure]

    return ratio


TURN: Final = "a turn of four messages per call, 16 sessions of 1,000 messages: messages per second"
EXPERIMENTS: Final = (
    Experiment(
        "peers-turns",
        "a turn of four messages per call, 16 sessions of 1,000 messages",
        turns,
        tuple(
            Goal(
                TURN,
                f"{against}, in process on the same PostgreSQL",
                faster(names, "foldlog", "messages_per_s", is_rate=True),
                least=least,
                needs=tuple(names),
            )
            for against, names, least in (
                ("OpenAI Agents", ["OpenAI Agents"], 8.0),
                ("Google ADK", ["Google ADK"], 15.0),
                ("LangGraph (the best of saver, graph, DeltaChannel)", LANGGRAPH, 20.0),
            )
        ),
        rounds=3,
    ),
    Experiment(
        "peers-load",
        "load a 10,000-message session, decoded",
        loads,
        tuple(
            Goal(
                "load a 10,000-message session, cold and decoded: times faster",
                name,
                faster([name], "foldlog, cold", "seconds", is_rate=False),
                least=1.0,
                needs=(name,),
            )
            for name in PEERS.values()
            if name != "by hand"
        ),
        rounds=3,
    ),
    Experiment(
        "peers-fork",
        "fork at the middle of a 10,000-message session",
        forks,
        tuple(
            Goal(
                "fork at the middle of a 10,000-message session: times faster",
                name,
                faster([name], "foldlog", "seconds", is_rate=False),
                least=100.0,
                needs=(name,),
            )
            for name in PEERS.values()
            if name != "by hand"
        ),
        rounds=1,
    ),
)
