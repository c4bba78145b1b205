"""What measurements are made with: requests as bytes, the workload, spreads and verdicts."""

from __future__ import annotations

import json
from itertools import islice

import pytest
from foldlog.v1.event_pb2 import EventBody
from foldlog.v1.service_pb2 import AppendEventsRequest, AppendStreamRequest, AppendStreamResponse

from bench import encoding, report, wire, workload
from bench.experiments import ALL
from bench.goals import Case, Goal, Outcome, measured, quotient
from bench.samples import Sample, Spread, percentile
from bench.wire import RefusedError

AIMED_AT = (200, 600, 1_500, 800)


def test_the_workloads_messages_are_as_large_as_said() -> None:
    turn = next(workload.turns())
    sizes = [len(json.dumps(each)) for each in turn]
    assert all(abs(size - aim) < aim * 0.1 for size, aim in zip(sizes, AIMED_AT, strict=True))


def test_the_workload_is_the_same_each_time() -> None:
    assert workload.messages(40, seed=3) == workload.messages(40, seed=3)
    assert workload.messages(40, seed=3) != workload.messages(40, seed=4)


def test_requests_as_bytes_are_what_protobuf_reads() -> None:
    requests = [AppendEventsRequest.FromString(each) for each in islice(wire.appends("s", 4), 3)]
    said = [encoding.event(each) for each in next(workload.turns())]
    assert list(requests[0].events) == said
    assert {each.session_id for each in requests} == {"s"}
    assert len({each.request_id for each in requests}) == 3


def test_elements_are_numbered_from_one() -> None:
    elements = [AppendStreamRequest.FromString(each) for each in islice(wire.elements("s"), 200)]
    assert [each.number for each in elements] == list(range(1, 201))
    assert all(each.batch.events[0].body != EventBody() for each in elements)


def test_a_refused_element_is_no_append() -> None:
    refused = AppendStreamResponse(number=1)
    refused.error.message = "no"
    with pytest.raises(RefusedError, match="no"):
        wire.require_appended(refused.SerializeToString())


def test_cases_take_turns_at_being_first() -> None:
    order: list[str] = []

    def case(name: str) -> Case:
        def measure() -> Sample:
            order.append(name)
            return {"x": 1.0}

        return measure

    cases = {name: case(name) for name in "abc"}
    for number in range(3):
        assert list(measured(cases, number)) == ["a", "b", "c"]
    assert "".join(order) == "abc" + "bca" + "cab"


def test_a_ratio_is_found_within_each_round() -> None:
    goal = Goal("what", "against", quotient("ours", "theirs", "per_s"), least=0.7)
    rounds = [{"ours": {"per_s": x * 0.8}, "theirs": {"per_s": x}} for x in (100.0, 900.0, 10.0)]
    ratios = Spread.of([goal.ratio(each) for each in rounds])
    assert [ratios.least, ratios.median, ratios.most] == pytest.approx([0.8] * 3)
    assert goal.is_met(ratios.median)
    assert not goal.is_met(0.69)


def test_what_was_not_measured_is_not_met() -> None:
    for verdict in Outcome(ALL[1]).verdicts:
        assert not verdict.is_met
    assert "not measured" in report.written([Outcome(ALL[1])], {}, 1.0)


def test_a_percentile_is_a_value_that_was_measured() -> None:
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([float(each) for each in range(100)], 0.99) == 99.0


def test_experiments_have_names_of_their_own_and_goals() -> None:
    names = [each.name for each in ALL]
    assert len(set(names)) == len(names)
    assert [each.name for each in ALL if not each.goals] == ["limits"]
    assert {each.name for each in ALL if each.is_quick} == {
        *("unary-16", "unary-1", "stream-32", "workers-16", "turns-4"),
    }
