"""Free JSON: what is refused, and when two texts are the same."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from foldlog.core.canonical import SAFE_DEPTH, canonical, check_free_json, json_equal
from foldlog.core.errors import InvalidFieldError
from hypothesis import given, settings
from hypothesis import strategies as st

REFUSED = {
    "nothing": ("", "Expecting value at character 0"),
    "a word": ("hello", "Expecting value at character 0"),
    "a cut text": ('{"a": [1,', "at character 9"),
    "two values": ("1 2", "Extra data at character 2"),
    "a single quote": ("{'a': 1}", "at character 1"),
    "a trailing comma": ('{"a": 1,}', "at character"),
    "a comment": ("[1 /* one */]", "at character 3"),
    "a leading zero": ("01", "Extra data at character 1"),
    "a plus": ("+1", "Expecting value"),
    "no digit behind the dot": ("[1.]", "at character"),
    "a digit of another script": ("\u0661", "Expecting value"),
    "a byte order mark": ("\ufeff{}", "Expecting value at character 0"),
    "a raw tab in a string": ('"\t"', "Invalid control character"),
    "a bad escape": (r'"\x41"', "escape"),
    "white space of another kind": ("\u00a01", "Expecting value"),
    "NaN": ('{"a": NaN}', "NaN"),
    "Infinity": ("[Infinity]", "Infinity"),
    "-Infinity": ("[-Infinity]", "-Infinity"),
    "a key twice": ('{"a": 1, "b": 2, "a": 1}', "'a' twice"),
    "a key twice, deep": ('[[{"x": {"k": 1, "k": 2}}]]', "'k' twice"),
    "a key twice, once escaped": (r'{"a": 1, "\u0061": 2}', "'a' twice"),
    "a lone high surrogate": (r'["ok", "\ud83d"]', "lone surrogate at character 8"),
    "a lone low surrogate": (r'"\uDE00"', "lone surrogate at character 1"),
    "two high surrogates": (r'"\ud83d\ud83d"', "lone surrogate"),
    "surrogates the wrong way round": (r'"\ude00\ud83d"', "lone surrogate"),
    "a surrogate in a key": (r'{"\ud800": 1}', "lone surrogate"),
    "a raw surrogate": ('"\ud800"', "lone surrogate at character 1"),
    "a high surrogate, then an escape": (r'"\ud83d\n"', "lone surrogate"),
}

LOSSLESS = {
    "19 digits": "9007199254740993123",
    "10,000 digits": "1" * 10_000,
    "a float past every double": "1E400",
    "digits past every double": "0.1000000000000000055511151231257827",
    "minus nought": "-0.0",
    "a pair of surrogates": r'"\ud83d\ude00"',
    "a backslash, then the letters": r'"\\ud800"',
    "NUL": r'"\u0000"',
    "an emoji": '"\U0001f525"',
    "white space": " \t\r\n{ } ",
    "an empty key": '{"": 1}',
    "keys that differ in case": '{"a": 1, "A": 2}',
    "keys that differ in normal form": '{"\u00e9": 1, "e\u0301": 2}',
    "the same key in two objects": '[{"a": 1}, {"a": 1}]',
    "brackets in strings": json.dumps("[{" * 5_000),
    "wide, not deep": "[" + "[]," * 5_000 + "[]]",
    "literals": "[null, true, false]",
}


@pytest.mark.parametrize(("text", "wrong"), REFUSED.values(), ids=REFUSED)
def test_lossy_json_is_refused_naming_field_and_fault(text: str, wrong: str) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        check_free_json(text, "extra_json", 128)
    assert list(refused.value.fields) == ["extra_json"]
    assert wrong in refused.value.fields["extra_json"]


@pytest.mark.parametrize("text", LOSSLESS.values(), ids=LOSSLESS)
def test_lossless_json_is_taken(text: str) -> None:
    check_free_json(text, "extra_json", 128)


@pytest.mark.parametrize("brackets", [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_depth_is_counted_in_brackets(brackets: tuple[str, str]) -> None:
    opening, closing = brackets
    each = opening.count("[") + opening.count("{")
    check_free_json(opening * (8 // each) + "1" + closing * (8 // each), "f", 8)
    with pytest.raises(InvalidFieldError, match="nests deeper than 8"):
        check_free_json(opening * 9 + "1" + closing * 9, "f", 8)


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 100_000 + "]" * 100_000, '{"a":' * 100_000])
def test_nesting_without_end_is_a_typed_refusal_whatever_the_limit(text: str) -> None:
    for limit in (1, 128, SAFE_DEPTH, 10**9):
        with pytest.raises(InvalidFieldError, match="nests deeper than"):
            check_free_json(text, "f", limit)
    assert canonical(text) == text


def test_nesting_up_to_the_safe_depth_is_read() -> None:
    text = "[" * SAFE_DEPTH + " " + "]" * SAFE_DEPTH
    check_free_json(text, "f", SAFE_DEPTH)
    assert canonical(text) == text.replace(" ", "")


CANONICAL = {
    "keys sorted, no white space": ('{ "b" : 1, "a" : [ 1, 2 ] }', '{"a":[1,2],"b":1}'),
    "keys sorted at every depth": ('[{"b":{"d":1,"c":2},"a":0}]', '[{"a":0,"b":{"c":2,"d":1}}]'),
    "number tokens as written": ("[1, 1.0, 1e0, 1E0, -0, 10]", "[1,1.0,1e0,1E0,-0,10]"),
    "big numbers": ("[12345678901234567890123, 1E400]", "[12345678901234567890123,1E400]"),
    "escapes": (r'"\u0041\/\u00e9\ud83d\ude00"', '"A/\u00e9\U0001f600"'),
    "controls": (r'"\u000a\u0000\u001f\u007f"', '"\\n\\u0000\\u001f\x7f"'),
    "quotes and backslashes": (r'"\u0022\u005c"', r'"\"\\"'),
    "a string like a number": ('["1", 1]', '["1",1]'),
    "literals": ("[ null , true , false ]", "[null,true,false]"),
    "empty ones": ('{ "a" : { } , "b" : [ ] , "c" : "" }', '{"a":{},"b":[],"c":""}'),
}


@pytest.mark.parametrize(("text", "form"), CANONICAL.values(), ids=CANONICAL)
def test_the_canonical_form(text: str, form: str) -> None:
    assert canonical(text) == form
    assert canonical(form) == form


@pytest.mark.parametrize("text", [text for text, _ in REFUSED.values()], ids=REFUSED)
def test_lossy_json_compares_as_text(text: str) -> None:
    assert canonical(text) == text
    assert json_equal(text, text)
    assert not json_equal(text, text + " ")


DIFFERENT = [
    ("1", "1.0"),
    ("1.0", "1e0"),
    ("1", '"1"'),
    ("null", "{}"),
    ("[]", "{}"),
    ("[1,2]", "[2,1]"),
    ('{"a":null}', "{}"),
    ('"e\u0301"', '"\u00e9"'),
    ('{"a":1,"a":1}', '{"a":1}'),
    ("0", "-0"),
]


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_different_json_is_not_equal(a: str, b: str) -> None:
    assert not json_equal(a, b)
    assert not json_equal(b, a)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def _written(value: Any, random: Random) -> str:
    """Write a value with keys, white space and escapes as chance will have them."""
    space = random.choice(("", " ", "\n\t "))
    match value:
        case dict():
            pairs = list(value.items())
            random.shuffle(pairs)
            inner = [f"{_written(k, random)}{space}:{space}{_written(v, random)}" for k, v in pairs]
            return f"{{{space}{f'{space},'.join(inner)}{space}}}"
        case list():
            return f"[{space}{f',{space}'.join(_written(v, random) for v in value)}{space}]"
        case str():
            return json.dumps(value, ensure_ascii=random.random() < 0.5)
    return json.dumps(value)


@settings(max_examples=300, deadline=None)
@given(values, values, st.randoms(use_true_random=False))
def test_equal_values_and_no_others_are_equal_however_written(
    a: Any, b: Any, random: Random
) -> None:
    assert json_equal(_written(a, random), _written(a, random))
    assert json.loads(canonical(_written(a, random))) == a
    assert json_equal(_written(a, random), _written(b, random)) == (json.dumps(a) == json.dumps(b))
    check_free_json(_written(a, random), "f", 128)
