"""Each edit of stored rows is found by `foldlog verify`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from foldlog.internal.v1.storage_pb2 import Envelope

from tests.cli.shell import Shell
from tests.integrity.attacker import Attacker, RawRow
from tests.integrity.conftest import fill, found

Edit = Callable[[Attacker, str, list[RawRow]], None]
COMMITMENT = "it does not match its commitment"
CHAIN = "it does not continue the chain"


def reworded(row: RawRow) -> RawRow:
    """Return a row whose message says something else, and is as long."""
    return row.changed(lambda e: setattr(e, "body", e.body.replace(b"message", b"MESSAGE")))


def content(attacker: Attacker, session: str, rows: list[RawRow]) -> None:
    attacker.put(session, reworded(rows[3]))


def middle(attacker: Attacker, session: str, rows: list[RawRow]) -> None:
    attacker.cut(session, 4, 5)


def first(attacker: Attacker, session: str, rows: list[RawRow]) -> None:
    attacker.cut(session, 1, 1)


def reordered(attacker: Attacker, session: str, rows: list[RawRow]) -> None:
    left, right = rows[3], rows[4]
    attacker.put(session, replace(left, state=right.state), replace(right, state=left.state))


def moved_up(attacker: Attacker, session: str, rows: list[RawRow]) -> None:
    """Take a row out and let those behind it close the gap."""
    attacker.cut(session, 4)
    attacker.put(session, *(replace(row, version=row.version - 1) for row in rows[4:]))


def inserted(attacker: Attacker, session: str, rows: list[RawRow]) -> None:
    """Write one more row behind the newest, made of that one."""
    new = rows[-1].changed(lambda e: setattr(e, "seq", e.seq + 1))
    place = attacker.next_place()
    attacker.put(session, replace(new, version=new.version + 1, place=place, request_key=None))


def replayed(attacker: Attacker, session: str, rows: list[RawRow]) -> None:
    attacker.put(session, replace(rows[-1], state=rows[2].state))


def topic(attacker: Attacker, session: str, rows: list[RawRow]) -> None:
    attacker.put(session, replace(rows[3], topic="fact"))


def tenant(attacker: Attacker, session: str, rows: list[RawRow]) -> None:
    attacker.put(session, replace(rows[3], tenant="other"))


def request_key(attacker: Attacker, session: str, rows: list[RawRow]) -> None:
    attacker.put(session, replace(rows[3], request_key=b"another"))


def no_request_key(attacker: Attacker, session: str, rows: list[RawRow]) -> None:
    attacker.put(session, replace(rows[3], request_key=None))


def place(attacker: Attacker, session: str, rows: list[RawRow]) -> None:
    """Let the newest row seem older in the feed of all sessions than those before it."""
    attacker.put(session, replace(rows[-1], place=-7))


def time(attacker: Attacker, session: str, rows: list[RawRow]) -> None:
    attacker.put(session, rows[3].changed(lambda e: setattr(e, "time_s", 1)))


def emptied(attacker: Attacker, session: str, rows: list[RawRow]) -> None:
    """Take a message's body, as a snapshot would that was never asked for."""
    attacker.put(session, rows[3].changed(_take_body))


def marked(attacker: Attacker, session: str, rows: list[RawRow]) -> None:
    """Mark a message as dropped that counts."""
    attacker.put(session, rows[3].changed(lambda e: setattr(e, "dropped", True)))


def emptied_fact(attacker: Attacker, session: str, rows: list[RawRow]) -> None:
    attacker.put(session, rows[0].changed(_take_body))


def _take_body(envelope: Envelope) -> None:
    envelope.dropped = True
    envelope.ClearField("body")


EDITS: dict[str, tuple[Edit, tuple[int | None, str]]] = {
    "content": (content, (2, COMMITMENT)),
    "middle deleted": (middle, (None, "rows 4 to 5 are missing")),
    "first deleted": (first, (None, "rows 1 to 1 are missing")),
    "reordered": (reordered, (3, CHAIN)),
    "taken out and closed up": (moved_up, (3, CHAIN)),
    "inserted": (inserted, (6, CHAIN)),
    "an old version replayed": (replayed, (1, CHAIN)),
    "topic": (topic, (None, CHAIN)),
    "request key": (request_key, (2, "its request key is another one")),
    "request key taken": (no_request_key, (2, "its request key is another one")),
    "place in the feed": (place, (5, "its place in the feed is not behind that of the row")),
    "time": (time, (2, CHAIN)),
    "body taken": (emptied, (2, "it is marked as dropped, and no fact says so")),
    "marked as dropped": (marked, (2, "it is marked as dropped, and no fact says so")),
    "body of a fact taken": (emptied_fact, (0, "it is marked as dropped, and no fact says so")),
}


@pytest.mark.parametrize(("edit", "expected"), EDITS.values(), ids=EDITS)
def test_an_edit_of_rows_is_found(
    edit: Edit, expected: tuple[int | None, str], user: Shell, attacker: Attacker, told: str
) -> None:
    edit(attacker, told, attacker.rows(told))
    assert any(matching(expected, found(user, told)))


def matching(
    expected: tuple[int | None, str], faults: list[tuple[int | None, str]]
) -> Iterator[bool]:
    for seq, description in faults:
        yield seq == expected[0] and description.startswith(expected[1])


def test_a_row_of_another_tenant_is_found_where_the_database_hides_it_too(
    user: Shell, attacker: Attacker, told: str
) -> None:
    tenant(attacker, told, attacker.rows(told))
    hidden = (None, "rows 4 to 4 are missing")
    shown = (2, "it is filed under another tenant")
    assert found(user, told) == [shown if attacker.is_sqlite else hidden]


def test_a_row_copied_from_another_session_is_found(
    user: Shell, attacker: Attacker, told: str
) -> None:
    other = fill(user)
    rows, donors = attacker.rows(told), attacker.rows(other)
    attacker.put(told, replace(rows[3], state=donors[3].state))
    assert {(2, COMMITMENT), (2, CHAIN)} <= set(found(user, told))
    assert user.json("verify", other)["intact"]


def test_an_edit_of_a_parent_is_found_in_its_forks(
    user: Shell, attacker: Attacker, told: str
) -> None:
    fork = user.ok("fork", told, "--at", "3").strip()
    beside = user.ok("fork", told, "--at", "1").strip()
    content(attacker, told, attacker.rows(told))
    assert (2, COMMITMENT) in found(user, fork)
    assert user.json("verify", beside)["intact"]


def test_what_a_snapshot_drops_is_no_edit_in_the_session_nor_its_forks(
    user: Shell, attacker: Attacker, told: str
) -> None:
    fork = user.ok("fork", told, "--at", "4").strip()
    user.ok("replace", told, "0", "5", "short")
    user.ok("snapshot", told)
    assert any(row.envelope.dropped for row in attacker.rows(told))
    assert user.json("verify", told)["intact"]
    assert user.json("verify", fork)["intact"]


def test_a_row_that_is_not_as_written_costs_the_rows_behind_it_no_fault(
    user: Shell, attacker: Attacker, told: str
) -> None:
    row = attacker.rows(told)[3]
    attacker.put(told, replace(row, state=b"\xff" * len(row.state)))
    assert found(user, told) == [(2, "it does not decode")]
