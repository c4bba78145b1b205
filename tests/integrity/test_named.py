"""What is noted of attachments, and they themselves, changed behind the service's back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.shell import Shell
from tests.contract.attachments import collect, looking, put
from tests.contract.calls import Calls, fresh_id
from tests.contract.said import user as said
from tests.integrity.attacker import Attacker
from tests.integrity.test_derived import found, of_session
from tests.served import Served

Edit = Callable[[Attacker, str], object]

UNNAMED = "1 attachments that it names are not noted as named"
MINE = "WHERE aggregate_id = %s"
EDITS: dict[str, tuple[Edit, list[str]]] = {
    "removed": (of_session(f"DELETE FROM foldlog_object_references {MINE}"), [UNNAMED]),
    "dropped": (
        of_session(f"UPDATE foldlog_object_references SET dropped = true {MINE}"),
        [UNNAMED],
    ),
    "tenant": (
        of_session(f"UPDATE foldlog_object_references SET tenant = 'other' {MINE}"),
        ["attachments that it names are noted under another tenant"],
    ),
    "another row": (
        of_session(f"UPDATE foldlog_object_references SET version = version + 1 {MINE}"),
        [UNNAMED, "1 attachments are noted as named that it does not name"],
    ),
}


@pytest.fixture
def served(servers: Any, backend: str) -> Served:
    """A server whose events nobody touches: a damaged one ends the collections these tests make."""
    found: Served = servers.attacked(backend, "of attachments")
    return found


@pytest.fixture
def naming(served: Served) -> Calls:
    """A session that names an attachment, which is noted."""
    log = Calls.create(served.stub)
    log.append(looking(put(served.stub, fresh_id().encode()).sha256), said("b"))
    collect(served.stub)
    assert log.verify().intact
    return log


@pytest.mark.parametrize(("edit", "expected"), EDITS.values(), ids=EDITS)
def test_an_edit_of_what_is_noted_is_found(
    edit: Edit, expected: list[str], naming: Calls, user: Shell, attacker: Attacker
) -> None:
    edit(attacker, naming.session_id)
    told = found(user, naming.session_id)
    assert told == [("attachments", description) for description in expected]


def test_an_attachment_that_is_gone_is_found_by_those_who_name_it(
    served: Served, user: Shell, attacker: Attacker
) -> None:
    log, other = Calls.create(served.stub), Calls.create(served.stub)
    digest = put(served.stub, fresh_id().encode()).sha256
    log.append(looking(digest))
    attacker.sql("DELETE FROM foldlog_objects WHERE sha256 = %s", digest)
    ((part, description),) = found(user, log.session_id)
    assert part == "attachments"
    assert description == f"attachment {digest.hex()}, which it names, is not stored"
    assert other.verify().intact


def test_what_the_service_itself_does_departs_from_nothing(served: Served) -> None:
    """Compaction, forks, deletion and erasure between collections."""
    log = Calls.create(served.stub)
    digest = put(served.stub, fresh_id().encode()).sha256
    log.append(looking(digest), said("b"), looking(digest))
    child = log.fork()
    collect(served.stub)
    log.rewind(1)
    log.snapshot()
    log.append(looking(digest))
    assert (log.verify().intact, child.verify().intact) == (True, True)
    collect(served.stub)
    child.append(looking(digest))
    assert (log.verify().intact, child.verify().intact) == (True, True)
    child.erase()
    assert log.verify().intact
