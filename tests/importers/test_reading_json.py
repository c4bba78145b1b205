"""JSON and times as importers read them."""

from __future__ import annotations

import pytest
from foldlog.importers.json_value import elements, parsed
from foldlog.importers.times import ns_of_any, ns_of_iso, ns_of_ms
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    "data", [b"NaN", b"[Infinity]", b"1e999", b"{", b"", b"\xff", b"[" * 100_000, b"'a'"]
)
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parsed(data)


@pytest.mark.parametrize(
    ("data", "value", "alteration"),
    [
        (b'{"a":1,"a":2}', {"a": 2}, "twice"),
        (b"0.12345678901234567890", 0.12345678901234568, "more digits"),
        (b'"\\ud83d"', "\ufffd", "U+FFFD"),
        (b'"\\ud83d\\ude00"', "😀", None),
        (b"1.50", 1.5, None),
        (b"9007199254740993", 9007199254740993, None),
        (b'\xef\xbb\xbf"a"', "a", None),
    ],
)
def test_what_a_value_cannot_say_is_told(data: bytes, value: object, alteration: str) -> None:
    found = parsed(data)
    assert found.value == value
    assert [alteration in each for each in found.alterations] == ([True] if alteration else [])


@given(st.lists(st.dictionaries(st.text(), st.integers(), max_size=3), max_size=5), st.data())
def test_the_whole_elements_of_a_torn_list_are_those_before_the_cut(
    values: list[dict[str, int]], data: st.DataObject
) -> None:
    import json

    text = json.dumps(values)
    end = data.draw(st.integers(1, len(text)))
    found, at, is_whole = elements(text[:end], 1)
    assert found == values[: len(found)]
    assert at <= end
    assert is_whole == (end == len(text))


@pytest.mark.parametrize(
    ("text", "time_ns"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.123456789Z", 123_456_789),
        ("1970-01-01 01:00:00+01:00", 0),
        ("1970-01-01T00:00:01", 1_000_000_000),
        ("1969-12-31T23:59:59.5Z", -500_000_000),
        ("yesterday", None),
        ("2026-02-30T00:00:00Z", None),
        ("0000-01-01T00:00:00Z", None),
        (17, None),
    ],
)
def test_times_in_iso_8601(text: object, time_ns: int | None) -> None:
    assert ns_of_iso(text) == time_ns


def test_times_in_seconds_and_milliseconds() -> None:
    assert ns_of_any(1_772_355_600) == ns_of_any(1_772_355_600_000) == 1_772_355_600 * 10**9
    assert ns_of_any(1_772_355_600.25) == 1_772_355_600_250_000_000
    assert ns_of_ms(1.5) == 1_500_000
    assert ns_of_ms(10**30) is None
    assert ns_of_ms(True) is None
    assert ns_of_any(None) is None
