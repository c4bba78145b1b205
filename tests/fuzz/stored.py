"""A session's rows as a real service wrote them, in a store of this process, and spoilt there."""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from uuid import UUID

from foldlog.application.checkpoint import unsealed
from foldlog.application.history import History
from foldlog.application.identity import aggregate_id
from foldlog.application.projection import UNFIT, coalesced
from foldlog.application.readers import translated
from foldlog.application.rows import KeptByRows, RowReader
from foldlog.core.errors import FoldlogError
from foldlog.persistence.rows import SessionNotification, SessionStoredEvent
from foldlog.persistence.store import Store, open_store

from tests.contract.calls import Calls
from tests.contract.said import user
from tests.faults.ground import grown
from tests.served import Served

SESSION: Final = "a"
ID: Final[UUID] = aggregate_id("default", SESSION)
PROGRAM: Final = "tests.faults.frequent_checkpoints"


@dataclass(frozen=True, slots=True)
class Written:
    """What a service wrote of a session: its rows' topics and states, and a checkpoint."""

    topics: tuple[str, ...]
    states: tuple[bytes, ...]
    checkpoint: tuple[int, bytes]
    export: bytes


@cache
def written() -> Written:
    """Have a service write a session with something of everything in it."""
    with TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/foldlog.db"
        served = Served(url, Path(folder), program=PROGRAM).start()
        try:
            ground = grown(served.stub, SESSION)
            log = Calls(served.stub, SESSION)
            log.append(*(user(f"message {number}") for number in range(20)))
            export = log.export()
            served.terminate()  # what is written in the background is written by then
        finally:
            served.close()
        with closing(open_store(url)) as store:
            rows = store.recorder.select_events(ID)
            last = store.checkpoints.latest(ID, 2**62)
    assert last is not None
    assert ground.session_id == SESSION
    return Written(
        tuple(row.topic for row in rows),
        tuple(bytes(row.state) for row in rows),
        (last.originator_version, bytes(last.state)),
        export,
    )


@cache
def _store() -> Store:
    """Return a store in memory with the session in it."""
    store = open_store("sqlite:///:memory:")
    atexit.register(store.close)
    rows = zip(written().topics, written().states, strict=True)
    store.recorder.insert_events(
        [SessionStoredEvent(ID, version, *row) for version, row in enumerate(rows, 1)]
    )
    return store


@contextmanager
def _spoilt(version: int, state: bytes) -> Iterator[Store]:
    """Lend the store with one row's state exchanged."""
    store = _store()
    store.recorder.replace_states(ID, [(version, state)])
    try:
        yield store
    finally:
        store.recorder.replace_states(ID, [(version, written().states[version - 1])])


def read_row(data: bytes) -> None:
    """Read a session whose row of the version in the first byte has another state.

    Its damage is told as damage.
    """
    if not data:
        return
    version = data[0] % len(written().states) + 1
    with _spoilt(version, data[1:]) as store:
        history = History(store, RowReader(store, "default", KeptByRows()))
        for read in (_fold, _walk):
            try:
                read(history)
            except Exception as error:
                if not isinstance(translated(error), FoldlogError):
                    raise
    topic = written().topics[version - 1]
    with suppress(*UNFIT):  # which the index passes over
        list(coalesced([SessionNotification(ID, version, topic, data[1:], 1, "default")]))


def _fold(history: History) -> None:
    history.fold(history.open(ID, "default"))


def _walk(history: History) -> None:
    for row in history.reader.rows(ID, 0, None):
        history.reader.whole(row)


def read_checkpoint(data: bytes) -> None:
    """Read a checkpoint. The one that was made is used, and in its own place only.

    That no other is, is nothing for a fuzzer: it learns from comparisons what a digest is to be.
    """
    version, state = written().checkpoint
    assert (unsealed(ID, version, data) is not None) >= (data == state)
    assert unsealed(ID, version + 1, state) is None
