"""A store in a process of its own: `python -m bench.peers NAME URL`, asked on standard input."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
import warnings
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from importlib import import_module
from typing import Any, Final
from uuid import uuid4

from bench import workload
from bench.crew import Crew
from bench.peers.store import Store
from bench.peers.turns import Turns, session_of

NAMES: Final = {
    "by_hand": ("bench.peers.by_hand", "ByHand"),
    "openai": ("bench.peers.openai_agents", "OpenAIAgents"),
    "adk": ("bench.peers.adk", "GoogleADK"),
    "claude": ("bench.peers.claude", "ClaudeAgents"),
    "langgraph_saver": ("bench.peers.langgraph", "LangGraphSaver"),
    "langgraph": ("bench.peers.langgraph", "LangGraph"),
    "langgraph_delta": ("bench.peers.langgraph", "LangGraphDelta"),
}
LONG: Final = 10_000
WORKED: Final = 1_000


class Peer:
    """Answers questions about one store."""

    def __init__(self, name: str, url: str) -> None:
        module, kind = NAMES[name]
        self._module, self._kind, self._url = module, kind, url
        self._store: Store = getattr(import_module(module), kind)(url)
        self._long = str(uuid4())

    async def answer(self, question: str, number: float) -> Any:
        """Answer one."""
        asked: dict[str, Callable[[float], Awaitable[Any]]] = {
            "prepare": self._prepare,
            "grow": self._grow,
            "append": self._append,
            "load": self._load,
            "fork": self._fork,
        }
        return await asked[question](number)

    async def _prepare(self, _: float) -> None:
        await self._store.prepare()
        await self._store.connect()

    async def _grow(self, workers: float) -> None:
        """Make the sessions that workers append to, or the long one if there are none."""
        if not workers:
            await self._store.grow(self._long, workload.messages(LONG))
            await self._load(0)
        for seed in range(int(workers)):
            await self._store.grow(session_of(seed), workload.messages(WORKED, seed))

    async def _append(self, seconds: float) -> Any:
        """Let 16 processes append turns to a session each."""
        tasks = [Turns(self._module, self._kind, self._url, seed, seconds) for seed in range(16)]
        with Crew([self._module, "bench.peers.turns"]) as crew, crew.ready(tasks) as run:
            return [asdict(each) for each in run()]

    async def _load(self, _: float) -> float:
        started = time.perf_counter()
        count = await self._store.load(self._long)
        taken = time.perf_counter() - started
        assert count == LONG, count
        return taken

    async def _fork(self, _: float) -> float:
        started = time.perf_counter()
        await self._store.fork(self._long, LONG // 2)
        return time.perf_counter() - started


async def answer_all(peer: Peer) -> None:
    """Answer what is asked, line by line."""
    for line in sys.stdin:
        question, number = json.loads(line)
        try:
            answer = {"answer": await peer.answer(question, number)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=OUTPUT, flush=True)


if __name__ == "__main__":
    # What libraries print or warn of is not an answer.
    OUTPUT, sys.stdout = sys.stdout, sys.stderr
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    asyncio.run(answer_all(Peer(*sys.argv[1:])))
