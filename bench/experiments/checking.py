"""The full check, in process: what it costs beside reading the request at all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, Final

import uvloop
from foldlog.application.application import SessionApplication
from foldlog.persistence.store import open_store
from foldlog.settings import Settings
from foldlog.v1.message_pb2 import Message
from foldlog.v1.service_pb2 import CheckRequestRequest

from bench import encoding, workload
from bench.goals import Case, Experiment, Goal, quotient
from bench.ground import Ground
from bench.samples import Sample
from bench.sessions import grown

LENGTH: Final = 10_000


def timed(work: Callable[[], Any]) -> Sample:
    """Do something and return how long it took."""
    started, cpu_s = time.perf_counter(), time.process_time()
    work()
    return {
        "seconds": time.perf_counter() - started,
        "cpu_s": time.process_time() - cpu_s,
    }


def read(data: bytes) -> int:
    """Parse a request and read every field of its messages."""
    request = CheckRequestRequest.FromString(data)
    return sum(_read(each) for each in request.messages)


def _read(message: Message) -> int:
    size = int(message.role)
    if message.WhichOneof("content") == "text":
        size += len(message.text)
    for call in message.tool_calls:
        size += len(call.id) + len(call.name) + len(call.arguments)
    if message.HasField("tool_call_id"):
        size += len(message.tool_call_id)
    if message.HasField("name"):
        size += len(message.name)
    return size


def full(ground: Ground, stack: ExitStack) -> Mapping[str, Case]:
    """A check of all messages against a fold in memory, and a look at each of their fields."""
    url = ground.migrated()
    with ExitStack() as growing:
        session_id = grown(ground.serve(url=url, closed_by=growing), LENGTH)
    messages = [encoding.message(each) for each in workload.messages(LENGTH)]
    data = CheckRequestRequest(session_id=session_id, messages=messages).SerializeToString()
    runner = stack.enter_context(asyncio.Runner(loop_factory=uvloop.new_event_loop))
    store = open_store(url)
    stack.callback(store.close)
    app = SessionApplication(store, Settings(database_url=url))
    stack.callback(lambda: runner.run(app.stop()))
    checking = app.tenant().checking

    def check() -> None:
        judged = runner.run(checking.check(CheckRequestRequest.FromString(data)))
        assert judged.checked
        assert judged.violation is None

    check()
    return {"parse and read": lambda: timed(lambda: read(data)), "check": lambda: timed(check)}


EXPERIMENTS: Final = (
    Experiment(
        "check-full",
        "full CheckRequest of 10,000 messages, in process",
        full,
        (
            Goal(
                "full CheckRequest of 10,000 messages: time",
                "protobuf parse of the same request plus one pass reading every field",
                quotient("check", "parse and read", "seconds"),
                most=1.5,
            ),
        ),
        rounds=9,
    ),
)
