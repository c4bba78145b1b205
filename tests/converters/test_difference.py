"""A difference makes the original of the natural form, whatever the two are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from foldlog.converters.difference import difference, is_same, patched
from foldlog.core.canonical import json_equal
from hypothesis import given

from tests.converters.strategies import VALUES


@given(natural=VALUES, original=VALUES)
def test_it_makes_the_original_again(natural: Any, original: Any) -> None:
    found = json.loads(json.dumps(difference(natural, original)))
    assert json.dumps(patched(natural, found)) == json.dumps(original)


@given(first=VALUES, second=VALUES)
def test_the_same_is_what_serialises_to_the_same_bytes(first: Any, second: Any) -> None:
    assert is_same(first, second) == (json.dumps(first) == json.dumps(second))


@pytest.mark.parametrize(
    ("natural", "original", "found"),
    [
        pytest.param({"a": 1}, {"a": 1}, None, id="same"),
        pytest.param(1, 1.0, {"is": 1.0}, id="number"),
        pytest.param(1, True, {"is": True}, id="boolean"),
        pytest.param({"a": 1}, {}, {"drop": ["a"]}, id="absent"),
        pytest.param({}, {"a": None}, {"set": {"a": None}}, id="null"),
        pytest.param(
            {"a": [0, 1]}, {"a": [0, 2]}, {"in": {"a": {"in": {"1": {"is": 2}}}}}, id="in"
        ),
        pytest.param([0], [0, 1], {"is": [0, 1]}, id="length"),
        pytest.param({"a": 1, "b": 2}, {"b": 2, "a": 1}, {"keys": {"b": 0, "a": 0}}, id="order"),
    ],
)
def test_it_says_no_more_than_needed(natural: Any, original: Any, found: Any) -> None:
    assert difference(natural, original) == found
    assert is_same(difference(natural, original), found)


def test_an_order_is_nothing_canonical_json_sees() -> None:
    natural = {"a": 1, "b": 2, "c": 3}
    orders = [{"c": 3, "a": 1, "b": 2}, {"b": 2, "a": 1, "c": 3}]
    first, second = (json.dumps(difference(natural, order)) for order in orders)
    assert first != second
    assert json_equal(first, second)
