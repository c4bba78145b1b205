"""Workers: processes that wait for tasks, prepare them, and begin all at once."""

from __future__ import annotations

import multiprocessing
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Protocol

Gate = Callable[[], None]


@dataclass(slots=True)
class Tally:
    """What a worker did between the gate and its end."""

    operations: int = 0
    messages: int = 0
    elapsed_s: float = 0.0
    cpu_s: float = 0.0
    latencies_s: list[float] = field(default_factory=list)
    facts: dict[str, float] = field(default_factory=dict)


class Task(Protocol):
    """Work of one worker. It can be pickled."""

    def __call__(self, gate: Gate) -> Tally:
        """Prepare, pass the gate, where all wait for each other, and work."""
        ...


class WorkerError(RuntimeError):
    """A worker failed. The message holds its traceback."""


class Stopwatch:
    """Counts operations until the time is over, and what they cost this process."""

    def __init__(self, seconds: float) -> None:
        self.tally = Tally()
        self._cpu = time.process_time()
        self._start = time.perf_counter()
        self._stop = self._start + seconds

    def is_running(self) -> bool:
        """Tell whether there is time left."""
        return time.perf_counter() < self._stop

    def took(self, since: float, messages: int = 1) -> None:
        """Count an operation that was begun at that time of the performance counter."""
        self.tally.latencies_s.append(time.perf_counter() - since)
        self.tally.operations += 1
        self.tally.messages += messages

    def stop(self) -> Tally:
        """Return the tally, its times filled in."""
        self.tally.elapsed_s = time.perf_counter() - self._start
        self.tally.cpu_s = time.process_time() - self._cpu
        return self.tally


class Crew:
    """Worker processes that are made once and serve all tasks of a run. A context manager."""

    def __init__(self, preloaded: Sequence[str]) -> None:
        # Forked from a process that imported what they need, and that has no threads.
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(list(preloaded))
        self._workers: list[tuple[Any, Connection[Any, Any]]] = []

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        for process, pipe in self._workers:
            pipe.send(None)
            process.join()

    @contextmanager
    def ready(self, tasks: Sequence[Task]) -> Iterator[Callable[[], list[Tally]]]:
        """Prepare a task per worker, and give what opens the gate and waits for the tallies."""
        while len(self._workers) < len(tasks):
            self._hire()
        pipes = [pipe for _, pipe in self._workers[: len(tasks)]]
        for pipe, task in zip(pipes, tasks, strict=True):
            pipe.send(task)
        _received(pipes)

        def run() -> list[Tally]:
            for pipe in pipes:
                pipe.send("go")
            return _received(pipes)

        yield run

    def _hire(self) -> None:
        here, there = self._context.Pipe()
        process = self._context.Process(target=_work, args=(there,), daemon=True)
        process.start()
        self._workers.append((process, here))


def _received(pipes: Sequence[Connection[Any, Any]]) -> list[Any]:
    answers = [pipe.recv() for pipe in pipes]
    failed = [each for each in answers if isinstance(each, WorkerError)]
    if failed:
        raise failed[0]
    return answers


def _work(pipe: Connection[Any, Any]) -> None:
    def gate() -> None:
        pipe.send("ready")
        pipe.recv()

    while (task := pipe.recv()) is not None:
        try:
            pipe.send(task(gate))
        except Exception:
            pipe.send(WorkerError(traceback.format_exc()))
