"""Rubbish in files to import: changed files of every format, while others work."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import BytesIO
from typing import Any, Final

import pytest
from foldlog import Client, errors
from foldlog.importers import Format, Import, UnreadableFileError, formats
from foldlog.importers.log import Options
from foldlog.importers.report import Report
from foldlog.importers.source import Source

from tests.faults.extent import Extent
from tests.faults.ground import grown
from tests.faults.outcome import Outcome
from tests.faults.workers import Workers
from tests.fuzz.mutations import inputs
from tests.importers.reading import NAMES, bytes_of
from tests.served import Served

BACKENDS: Final = ("sqlite-file", "postgres")
FILES: Final = 25
# What no file can be the cause of.
FAULTS: Final = (
    *(errors.InternalError, errors.UnknownReasonError, errors.EventCorruptError),
    *(errors.StoreDamagedError, errors.StoreUnavailableError, errors.DeadlineExceededError),
)


class Importing:
    """Imports whatever it is given, and notes what came of it."""

    def __init__(self, client: Client, name: str) -> None:
        self.came_of: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._client = client
        self._name = name

    def take(self, data: bytes, salvage: bool) -> None:
        """Import a file, as a new session."""
        session_id = f"{self._name}-{self.came_of.total()}"
        try:
            Import(BytesIO(data), Format.AUTO, session_id, salvage).run(self._client)
            faults = self._client.session(session_id).verify().faults
            self.wrong += [f"an import is not sound: {fault}" for fault in faults]
        except UnreadableFileError:
            self.came_of["unreadable"] += 1
        except Exception as error:
            self.came_of["refused"] += 1
            if isinstance(error, FAULTS) or not isinstance(error, errors.FoldlogError):
                self.wrong.append(f"{error!r:.200} of {data!r:.200}")
        else:
            self.came_of["imported"] += 1

    def take_all(self, files: Sequence[bytes]) -> None:
        """Import files, every other one by salvage."""
        for number, data in enumerate(files):
            self.take(data, number % 2 == 1)


async def storm(served: Served, extent: Extent, rounds: int) -> Outcome:
    """Import changed files so often, and go on for the share of a soak."""
    wrong, came_of = list[str](), Counter[str]()
    exported = await asyncio.to_thread(grown, served.stub, "exported")
    corpus = [*map(bytes_of, NAMES), exported.export]
    async with Workers([served.address], extent.random, count=2, sessions=2) as workers:
        for number in extent.rounds(short=rounds, long=rounds):
            files = list(inputs(corpus, f"{extent.random.random()}", FILES))
            with Client(served.address) as client:
                importing = Importing(client, f"{workers.labels['storm']}-file-{number}")
                await asyncio.to_thread(importing.take_all, files)
            wrong += importing.wrong
            came_of += importing.came_of
        await workers.answers(4)
    outcome = workers.history.outcome(
        f"rubbish in files to import ({served.dialect})",
        await workers.audit(),
        injected=came_of.total(),
        control="lines are taken for what they are to be",
    )
    return replace(
        outcome,
        unsound=outcome.unsound + len(wrong),
        examples=(*wrong[:3], *outcome.examples),
        remark=", ".join(f"{count:,} {what}" for what, count in sorted(came_of.items())),
    )


def trusting(source: Source, report: Report, options: Options) -> Any:
    """Read a file without looking at what it is."""
    return [json.loads(line.data)["messages"] for line in source.lines()]


@pytest.mark.parametrize("backend", BACKENDS)
async def test_rubbish_in_files_is_refused_and_hinders_nobody(
    serve: Callable[..., Served], backend: str, extent: Extent, report: Callable[[Outcome], None]
) -> None:
    report(await storm(serve(backend), extent, rounds=1))


@pytest.mark.parametrize("backend", BACKENDS)
async def test_control_an_importer_that_trusts_its_file_fails(
    serve: Callable[..., Served],
    backend: str,
    extent: Extent,
    control: Callable[[Outcome], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in (*formats.IMPORTERS,):
        monkeypatch.setitem(vars(formats)["IMPORTERS"], name, trusting)
    control(await storm(serve(backend), extent, rounds=1))
