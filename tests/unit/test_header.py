"""When two request headers are the same."""

from __future__ import annotations

from dataclasses import fields

import pytest
from foldlog.core.header import (
    Header,
    HeaderReason,
    canonicalised,
    differing_fields,
    reason_to_write,
)

FULL = Header(
    provider="openai",
    model="m1",
    parameters_json='{"temperature": 0.5, "stop": ["a", "b"]}',
    system_prompt="Be brief.",
    tools_json=('{"name": "f", "strict": true}', '{"name": "g"}'),
    reasoning_effort="high",
)

SAME = {
    "itself": (FULL, FULL),
    "nothing and an empty one": (None, Header()),
    "parameters in another order": (
        Header(parameters_json='{"a":1,"b":2}'),
        Header(parameters_json='{ "b": 2, "a": 1 }'),
    ),
    "no parameters and an empty object": (Header(), Header(parameters_json=" { } ")),
    "tools in other bytes": (
        Header(tools_json=('{"b":{"y":1,"x":2},"a":"\\u00e9"}',)),
        Header(tools_json=('{"a": "\u00e9", "b": {"x": 2, "y": 1}}',)),
    ),
}

DIFFERENT = {
    "provider": (Header(provider="a"), Header(provider="b"), ("provider",)),
    "model": (FULL, Header(model="m2"), ("provider", "model", "parameters_json", "system_prompt")),
    "system prompt": (Header(system_prompt="a"), Header(system_prompt="a "), ("system_prompt",)),
    "effort": (Header(), Header(reasoning_effort="low"), ("reasoning_effort",)),
    "a number written otherwise": (
        Header(parameters_json='{"t":1}'),
        Header(parameters_json='{"t":1.0}'),
        ("parameters_json",),
    ),
    "a null member and none": (
        Header(parameters_json='{"t":null}'),
        Header(),
        ("parameters_json",),
    ),
    "an empty stop list and none": (
        Header(parameters_json='{"stop":[]}'),
        Header(parameters_json="{}"),
        ("parameters_json",),
    ),
    "the order of a list": (
        Header(parameters_json='{"stop":["a","b"]}'),
        Header(parameters_json='{"stop":["b","a"]}'),
        ("parameters_json",),
    ),
    "the order of tools": (
        Header(tools_json=("1", "2")),
        Header(tools_json=("2", "1")),
        ("tools_json",),
    ),
    "one tool more": (Header(tools_json=("1",)), Header(tools_json=("1", "1")), ("tools_json",)),
    "no header and one": (None, Header(model="m"), ("model",)),
    "parameters that are not JSON": (
        Header(parameters_json='{"a":1'),
        Header(parameters_json='{"a": 1'),
        ("parameters_json",),
    ),
}


@pytest.mark.parametrize(("logged", "sent"), SAME.values(), ids=SAME)
def test_same_headers_differ_in_nothing(logged: Header | None, sent: Header | None) -> None:
    assert differing_fields(logged, sent) == differing_fields(sent, logged) == ()


@pytest.mark.parametrize(("logged", "sent", "names"), DIFFERENT.values(), ids=DIFFERENT)
def test_the_differing_fields_are_named(
    logged: Header | None, sent: Header | None, names: tuple[str, ...]
) -> None:
    assert differing_fields(logged, sent)[: len(names)] == names
    assert differing_fields(sent, logged)[: len(names)] == names


def test_every_field_is_compared() -> None:
    names = tuple(field.name for field in fields(Header))
    assert differing_fields(FULL, None) == differing_fields(None, FULL) == names


@pytest.mark.parametrize("name", ["parameters in another order", "tools in other bytes"])
def test_byte_exact_tells_the_same_json_in_other_bytes(name: str) -> None:
    logged, sent = SAME[name]
    expected = ("parameters_json",) if "parameters" in name else ("tools_json",)
    assert differing_fields(logged, sent, byte_exact=True) == expected


@pytest.mark.parametrize("name", ["itself", "nothing and an empty one"])
def test_byte_exact_leaves_the_same_bytes_alone(name: str) -> None:
    assert differing_fields(*SAME[name], byte_exact=True) == ()


def test_absent_parameters_have_no_bytes_to_differ_in() -> None:
    assert differing_fields(Header(), Header(parameters_json="{}"), byte_exact=True) == ()


def test_the_canonical_header_is_its_own() -> None:
    form = canonicalised(FULL)
    assert form.parameters_json == '{"stop":["a","b"],"temperature":0.5}'
    assert form.tools_json == ('{"name":"f","strict":true}', '{"name":"g"}')
    assert canonicalised(form) == form


LOGGED = Header(model="m", parameters_json='{"a": 1, "b": 2}')
WRITTEN_OTHERWISE = Header(model="m", parameters_json='{"b":2,"a":1}')
OTHER = Header(model="n")


@pytest.mark.parametrize(
    ("logged", "sent", "first", "skip", "reason"),
    [
        (None, OTHER, False, False, HeaderReason.INITIAL),
        (None, Header(), True, True, HeaderReason.INITIAL),
        (LOGGED, WRITTEN_OTHERWISE, False, False, None),
        (LOGGED, OTHER, False, False, HeaderReason.CHANGE),
        (LOGGED, WRITTEN_OTHERWISE, True, False, HeaderReason.RESUME),
        (LOGGED, OTHER, True, False, HeaderReason.RESUME),
        (LOGGED, WRITTEN_OTHERWISE, True, True, None),
        (LOGGED, OTHER, True, True, HeaderReason.RESUME),
    ],
)
def test_why_a_header_is_owed(
    logged: Header | None, sent: Header, first: bool, skip: bool, reason: HeaderReason | None
) -> None:
    found = reason_to_write(logged, sent, is_first_of_epoch=first, skip_unchanged=skip)
    assert found is reason
