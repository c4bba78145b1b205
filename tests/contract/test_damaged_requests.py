"""Recorded requests beside damage: what cannot be made is told, what can is made."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.contract.calls import Calls
from tests.contract.refusal import refused
from tests.contract.requesting import HEADER, begin, explained, rebuilt, record, sent_of, verified
from tests.contract.said import header, replacing_entries, system, user
from tests.contract.test_damage import DAMAGED_SEQ, SPOILS, TEXT, damage
from tests.served import Served


@pytest.fixture(params=["sqlite-file", "postgres"])
def backend(request: pytest.FixtureRequest) -> str:
    """A store that can be reached from outside."""
    name: str = request.param
    return name


@pytest.mark.parametrize("spoil", SPOILS)
def test_requests_with_the_damage_in_them_are_told(
    serve: Callable[..., Served], backend: str, spoil: str
) -> None:
    served = serve(backend)
    log = Calls.create(served.stub)
    log.append(header(model="m"), user("a"), user(TEXT.decode()))
    record(log, sent_of(rebuilt(log, at_seq=DAMAGED_SEQ - 1)))
    within = record(log, sent_of(begin(log, header=HEADER).request)).seq
    log.append(replacing_entries(system("S"), DAMAGED_SEQ, DAMAGED_SEQ))
    after = record(log, sent_of(begin(log).request)).seq
    assert not verified(log).mismatches
    served.terminate()
    damage(served.database_url, SPOILS[spoil])
    served.start()
    answer = verified(log)
    # Where only the body is damaged the rest of the event is known, and so is what follows.
    lost = [within] if spoil == "another text" else [within, after]
    assert [each.seq for each in answer.mismatches] == lost
    assert {each.reason for each in answer.mismatches} == {"EVENT_CORRUPT"}
    assert answer.verified_count == 3
    assert not verified(log, from_seq=after + 1).mismatches
    with refused("EVENT_CORRUPT"):
        explained(log)
