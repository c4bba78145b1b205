"""What is kept in memory: how much of it, and for how long."""

from __future__ import annotations

import pytest
from foldlog.application.kept import Kept, SharedKept


@pytest.fixture(params=[Kept, SharedKept])
def kept(request: pytest.FixtureRequest) -> Kept[str, bytes]:
    """Room for ten bytes."""
    made: Kept[str, bytes] = request.param(10, len)
    return made


def test_those_kept_first_go_first_when_there_is_no_room(kept: Kept[str, bytes]) -> None:
    for key in "abc":
        kept.keep(key, b"four")
    assert [kept.get(key) for key in "abc"] == [None, b"four", b"four"]


def test_what_nobody_asks_for_is_forgotten_and_makes_room(kept: Kept[str, bytes]) -> None:
    kept.keep("asked for", b"four")
    kept.keep("not", b"four")
    assert kept.forget_unused() == 0  # it was kept a moment ago
    assert kept.get("asked for") == b"four"
    assert kept.forget_unused() == 1
    assert (kept.get("asked for"), kept.get("not")) == (b"four", None)
    kept.keep("other", b"six666")
    assert (kept.get("asked for"), kept.get("other")) == (b"four", b"six666")


def test_what_was_forgotten_meanwhile_is_not_counted(kept: Kept[str, bytes]) -> None:
    kept.keep("a", b"four")
    kept.forget_unused()
    kept.forget("a")
    assert kept.forget_unused() == 0
    kept.keep("a", b"four")
    assert kept.forget_unused() == 0
