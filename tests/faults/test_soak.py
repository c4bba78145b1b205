"""The soak's own parts: how long storms last, and the table of what came of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.faults.extent import Extent, extent_of
from tests.faults.harm import ROUNDS, until_harm
from tests.faults.outcome import Outcome, Recorded, require_harm, require_nothing_wrong
from tests.faults.soak import BEGIN, END, PAGE, table, uncontrolled, with_table

CALM = Outcome("a fault", 3, 1_000, 900, 0, 0, 0, 1.25, "no safeguard")
HARM = replace(CALM, acknowledged=90, lost=4, unsound=1)


def test_without_a_soak_a_storm_is_short_and_always_the_same() -> None:
    one, other = (extent_of("a test", 3, print) for _ in range(2))
    assert one.random.random() == other.random.random()
    assert one.random.random() != extent_of("another test", 3, print).random.random()
    assert (one.cycles(short=2, long=200), one.seconds(5)) == (2, 5)
    assert list(one.rounds(short=2, long=200)) == [0, 1]


def test_storms_share_a_soak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOAK_S", "1800")
    monkeypatch.setenv("SOAK_SEED", "7")
    extent = extent_of("a test", 3, print)
    assert (extent.seed, extent.seconds(5)) == ("7/a test", 600)
    assert extent.cycles(short=2, long=200) == 100


def test_a_soaks_rounds_end_after_its_share_and_after_all_cycles() -> None:
    assert list(Extent("1", share_s=0.0).rounds(short=1, long=3)) == [0, 1, 2]


def test_what_is_to_happen_often_happens_so_in_a_short_soak_too() -> None:
    brief = Extent("1", share_s=0.0, scale=0.01)
    assert len(list(brief.rounds(short=1, long=100))) == 1
    assert len(list(brief.rounds(short=1, long=100, least=5))) == 5
    assert len(list(Extent("1").rounds(short=1, long=100, least=5))) == 1


def test_a_storm_that_did_harm_fails_and_a_control_that_did_none() -> None:
    require_nothing_wrong(CALM)
    require_harm(HARM)
    with pytest.raises(AssertionError):
        require_harm(CALM)
    for each in (HARM, replace(CALM, injected=0), replace(CALM, acknowledged=0)):
        with pytest.raises(AssertionError):
            require_nothing_wrong(each)


async def test_a_control_goes_on_until_it_has_done_its_harm_but_not_for_ever() -> None:
    outcomes = [CALM, replace(CALM, doubled=1), HARM, HARM]

    async def storm() -> Outcome:
        return outcomes.pop(0)

    assert (await until_harm(storm, "lost")).lost == 4
    assert outcomes == [HARM]
    outcomes = [CALM] * 100
    assert (await until_harm(storm, "lost")).injected == ROUNDS * CALM.injected


def test_the_table_has_a_row_a_fault_with_what_its_control_found() -> None:
    other = replace(CALM, fault="one more", remark="served again after 1 s")
    records = [
        Recorded(CALM, is_control=False),
        Recorded(other, is_control=False),
        Recorded(HARM, is_control=True),
        Recorded(CALM, is_control=False),
    ]
    *_, first, second = table(records, "60 s").splitlines()
    assert first == (
        "| a fault | 6 | 2,000 | 1,800 | 0 | 0 | 0 | 1.2 s"
        " | no safeguard: 4 lost, 1 other faults of 90 |"
    )
    assert second.startswith("| one more; served again after 1 s | 3 |")
    assert uncontrolled(records) == {"one more"}


def test_a_report_keeps_what_was_recorded(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("soak") / "report"
    monkeypatch.setenv("SOAK_REPORT", str(path))
    wrong = replace(HARM, examples=("a is gone",))
    for each in (CALM, wrong):
        Recorded(each, is_control=each is wrong).write()
    assert [Recorded.read(line) for line in path.read_text().splitlines()] == [
        Recorded(CALM, is_control=False),
        Recorded(wrong, is_control=True),
    ]


def test_only_what_is_between_the_markers_of_the_page_is_written() -> None:
    page = PAGE.read_text()
    assert (page.count(BEGIN), page.count(END)) == (1, 1)
    written = with_table(page, "the table")
    assert f"{BEGIN}\nthe table\n{END}" in written
    assert with_table(written, page.partition(BEGIN)[2].partition(END)[0].strip("\n")) == page
