"""Writes what this release leaves in its databases: `python -m tests.tools.golden VERSION`.

With `zstd` as a second argument, as a service leaves them that compresses. To be run once for each
release, before its migrations or its answers change. Needs pg_dump.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foldlog.v1 import event_pb2

from tests.contract.calls import Calls
from tests.golden import small_checkpoints
from tests.golden.exchanges import Exchange, Recording, departures, write
from tests.golden.folders import DIALECTS, HERE, Golden, serving
from tests.golden.questions import ask_everything
from tests.golden.story import INLINE_BYTES, SESSIONS, tell, upload
from tests.postgres import database, program
from tests.served import Served


def make(golden: Golden, compression: str) -> None:
    """Make one golden database, with the answers it is to give."""
    golden.exports.mkdir(parents=True)
    golden.objects.mkdir()
    with tempfile.TemporaryDirectory() as place, _fresh(golden, Path(place)) as url:
        with _served(url, golden, Path(place), compression) as served:
            upload(served.stub)
            writes = Recording(served.channel)
            tell(writes)
            _require_repeatable(served, writes.exchanges)
            reads = Recording(served.channel)
            ask_everything(reads)
            _require_complete(reads.exchanges)
            _export(served, golden)
            served.terminate()
        write(golden.writes, writes.exchanges)
        write(golden.reads, reads.exchanges)
        _save(url, golden)


@contextmanager
def _fresh(golden: Golden, place: Path) -> Iterator[str]:
    if golden.dialect == "sqlite":
        yield f"sqlite:///{place / 'foldlog.db'}"
        return
    with database() as url:
        yield url


@contextmanager
def _served(url: str, golden: Golden, place: Path, compression: str) -> Iterator[Served]:
    shim = place / "shim"
    shim.mkdir()
    shutil.copy(small_checkpoints.__file__, shim / "sitecustomize.py")
    settings = {
        "PYTHONPATH": str(shim),
        "FOLDLOG_OBJECT_INLINE_BYTES": str(INLINE_BYTES),
        "FOLDLOG_COMPRESSION": compression,
    }
    with serving(url, golden.objects, place, **settings) as served:
        yield served


def _require_repeatable(served: Served, writes: list[Exchange]) -> None:
    for each in writes:
        if found := [*departures(each.answers, each.again(served.channel))]:
            raise SystemExit(f"a retry of {each.method} is answered otherwise: {found}")


def _require_complete(reads: list[Exchange]) -> None:
    """Refuse to go without a type of event: the story is to be told anew for a release with one."""
    pages = [page for each in reads if each.method == "ListEvents" for page in each.answers]
    found = {event["type"] for page in pages for event in page.get("events", [])}
    if missing := set(event_pb2.EventType.keys()[1:]) - found:
        raise SystemExit(f"no session has an event of {missing}")


def _export(served: Served, golden: Golden) -> None:
    for session_id in SESSIONS:
        if session_id != "deleted":
            golden.export(session_id).write_bytes(Calls(served.stub, session_id).export())


def _save(url: str, golden: Golden) -> None:
    if golden.dialect == "sqlite":
        shutil.copyfile(url.removeprefix("sqlite:///"), golden.database)
        return
    command = [str(program("pg_dump")), "--inserts", "--no-owner", "--no-privileges", url]
    dumped = subprocess.run(command, check=True, capture_output=True).stdout
    golden.database.write_bytes(_statements(dumped))


def _statements(dump: bytes) -> bytes:
    r"""Return a dump without comments and psql's own commands, such as \restrict."""
    lines = dump.splitlines(keepends=True)
    return b"".join(line for line in lines if not line.startswith((b"--", b"\\", b"\n")))


def main(version: str, compression: str = "none") -> None:
    """Make the golden databases of a release."""
    place = HERE / (version if compression == "none" else f"{version}-{compression}")
    if place.exists():
        raise SystemExit(f"{place} is there already, and is never to change")
    for dialect in DIALECTS:
        make(Golden(place / dialect), compression)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        raise SystemExit("usage: python -m tests.tools.golden VERSION [zstd]")
    main(*sys.argv[1:])
