"""What a process knows of the steps of a session goes with the session's fold."""

from __future__ import annotations

from collections.abc import Callable

from tests.contract.calls import Calls
from tests.contract.requesting import HEADER, begin
from tests.contract.said import user_message
from tests.contract.test_attachment_memory import memory_mib
from tests.served import Served

MESSAGES, SESSIONS, SWEEP_EVERY, GROWTH_MIB = 2_000, 30, 256, 12


def begin_many(base: Calls) -> None:
    """Begin a step in many sessions, and let what was used longest ago be forgotten."""
    for _ in range(SESSIONS):
        begin(base.fork(), skip=MESSAGES)
    other = Calls.create(base.stub)
    for _ in range(SWEEP_EVERY):
        other.get()


def test_steps_of_ever_more_sessions_take_no_more_memory(serve: Callable[..., Served]) -> None:
    served = serve("sqlite-memory", FOLDLOG_FOLD_CACHE_BYTES="1000000")
    base = Calls.create(served.stub)
    for _ in range(MESSAGES // 500):
        base.seed(*[user_message("x")] * 500)
    begin(base, header=HEADER, skip=MESSAGES)
    begin_many(base)
    before = memory_mib(served, "VmRSS")
    begin_many(base)
    assert memory_mib(served, "VmRSS") - before < GROWTH_MIB
