"""Collecting attachments: what a stored event of any session or fork names stays."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import DURABLE_BACKENDS
from tests.contract.attachments import collect, digest_of, got, looking, put, sample, stored
from tests.contract.calls import Calls
from tests.contract.refusal import refused
from tests.contract.said import replacing, user
from tests.served import Served

NO_GRACE = {"FOLDLOG_OBJECT_GRACE_S": "0"}


@pytest.fixture
def eager(serve: Callable[..., Served], backend: str) -> Served:
    """A server whose collections spare nothing for its youth."""
    return serve(backend, **NO_GRACE)


def test_what_nothing_names_is_collected_and_the_rest_stays(eager: Served) -> None:
    stub = eager.stub
    small, large, named = b"small", sample(300_000), b"named"
    for data in (small, large, named):
        put(stub, data)
    Calls.create(stub).append(user("a"), looking(digest_of(named)))
    for is_dry in (True, False):
        answer = collect(stub, dry_run=is_dry)
        assert answer.collected_count == 2
        assert answer.collected_bytes == 300_005
        assert answer.examined_count == 3
    assert stored(stub, *map(digest_of, (small, large, named))) == {digest_of(named): 5}
    with refused("ATTACHMENT_UNKNOWN"):
        got(stub, digest_of(large))
    assert collect(stub).collected_count == 0
    put(stub, large)
    assert got(stub, digest_of(large)) == large


def test_shadowed_and_undone_events_still_name_theirs(eager: Served) -> None:
    digests = [put(eager.stub, each).sha256 for each in (b"shadowed", b"undone")]
    log = Calls.create(eager.stub)
    log.append(looking(digests[0]), replacing(user("short"), 0, 0), looking(digests[1]))
    log.rewind(1)
    assert log.texts() == ["short"]
    assert collect(eager.stub).collected_count == 0


def test_a_dropped_body_names_nothing_any_more(eager: Served) -> None:
    dropped, live = (put(eager.stub, each).sha256 for each in (b"dropped", b"live"))
    log = Calls.create(eager.stub)
    log.append(looking(dropped), looking(live), looking(dropped))
    assert collect(eager.stub).collected_count == 0
    log.append(replacing(user("short"), 0, 0), replacing(user("shorter"), 2, 2))
    log.snapshot()
    assert collect(eager.stub, dry_run=True).collected_count == 1
    assert collect(eager.stub).collected_bytes == len(b"dropped")
    assert stored(eager.stub, dropped, live) == {live: 4}


def test_a_body_that_was_dropped_but_for_a_fork_names_its_until_the_fork_is_gone(
    eager: Served,
) -> None:
    digest = put(eager.stub, b"picture").sha256
    log = Calls.create(eager.stub)
    log.append(looking(digest), user("b"))
    fork = log.fork(1)
    log.append(replacing(user("short"), 0, 0))
    log.snapshot()
    assert collect(eager.stub).collected_count == 0
    assert fork.messages()[0].parts.parts[1].attachment.sha256 == digest
    assert got(eager.stub, digest) == b"picture"
    fork.delete()
    assert collect(eager.stub).collected_count == 1


def test_a_fork_after_the_drop_keeps_nothing(eager: Served) -> None:
    digest = put(eager.stub, b"picture").sha256
    log = Calls.create(eager.stub)
    log.append(looking(digest), replacing(user("short"), 0, 0))
    assert collect(eager.stub).collected_count == 0
    log.snapshot()
    log.fork()
    assert collect(eager.stub).collected_count == 1


def test_a_deleted_session_names_only_what_forks_read(eager: Served) -> None:
    early, late = (put(eager.stub, each).sha256 for each in (b"early", b"late"))
    log = Calls.create(eager.stub)
    log.append(looking(early), user("b"), looking(late))
    fork = log.fork(1)
    of_fork = fork.fork()
    log.delete()
    assert collect(eager.stub).collected_bytes == len(b"late")
    fork.delete()
    assert collect(eager.stub).collected_count == 0
    assert got(eager.stub, early) == b"early"
    of_fork.delete()
    assert collect(eager.stub).collected_bytes == len(b"early")


def test_an_import_and_a_restore_name_theirs(eager: Served) -> None:
    digests = [put(eager.stub, each).sha256 for each in (b"one", b"two")]
    log = Calls.create(eager.stub)
    events = [looking(each) for each in digests]
    log.append(*events)
    copy = Calls.create(eager.stub)
    copy.restore(*log.events())
    log.delete()
    assert collect(eager.stub).collected_count == 0


def test_what_is_young_stays_and_each_put_and_question_makes_it_young(
    serve: Callable[..., Served], backend: str
) -> None:
    stub = serve(backend, FOLDLOG_OBJECT_GRACE_S="3600").stub
    put(stub, b"young")
    assert collect(stub).collected_count == 0
    assert collect(stub, grace_s=0).collected_count == 0
    assert collect(stub, grace_s=7200).examined_count == 1
    with refused("INVALID_FIELD"):
        collect(stub, grace_s=-1)


@pytest.mark.parametrize("backend", DURABLE_BACKENDS, indirect=True)
def test_references_are_followed_from_where_the_last_collection_stopped(
    serve: Callable[..., Served], backend: str
) -> None:
    served = serve(backend, **NO_GRACE)
    log = Calls.create(served.stub)
    for number in range(3):
        digest = put(served.stub, sample(100, [number])).sha256
        log.append(*(user("filler") for _ in range(400)), looking(digest))
        assert collect(served.stub).collected_count == 0
        served.restart("kill9")
    assert collect(served.stub).examined_count == 3


def test_files_that_no_row_names_are_removed_once_they_are_old(
    serve: Callable[..., Served], backend: str, tmp_path: Path
) -> None:
    served = serve(backend, **NO_GRACE, FOLDLOG_OBJECT_DIRECTORY=str(tmp_path))
    data = sample(300_000)
    Calls.create(served.stub).append(looking(put(served.stub, data).sha256))
    (path,) = (each for each in tmp_path.rglob("*") if each.is_file())
    old = path.with_name(f"{path.name[:-4]}0000")
    young = path.with_name(f"{path.name[:-4]}1111")
    abandoned = tmp_path / "incoming" / "0"
    for each in (old, young, abandoned):
        each.write_bytes(b"x")
    for each in (old, abandoned, path):
        aged(each)
    collect(served.stub, dry_run=True)
    assert old.exists()
    collect(served.stub)
    assert [each.exists() for each in (old, young, abandoned)] == [False, True, False]
    assert got(served.stub, digest_of(data)) == data


def aged(path: Path) -> None:
    os.utime(path, (1_000_000_000, 1_000_000_000))
