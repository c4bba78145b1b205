"""What a case sends that the wire has no form for, or no room: the client library says so first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import foldlog
import pytest
from foldlog import errors

from tests.cases import forms, table
from tests.served import Served

CASES = {case["id"]: case for case in table.field_cases()}


@pytest.fixture
def session(served: Served) -> Iterator[foldlog.Session]:
    """A new session of the client library."""
    with foldlog.Client(served.address) as client:
        yield client.create()


def half_characters() -> list[dict[str, Any]]:
    """Return the results of case enc-01 whose text holds half a character."""
    results = [op["data"] for op in CASES["enc-01"]["ops"] if op.get("type") == "tool_result"]
    return [data for data in results if "$concat" in data["content"]]


def test_half_a_character_is_refused_before_anything_is_sent(session: foldlog.Session) -> None:
    session.append(foldlog.user("run the suite"))
    (data,) = half_characters()
    text = forms.value(data["content"])
    with pytest.raises(errors.InvalidFieldError) as refused:
        session.append(foldlog.tool_result(text, tool_call_id=data["tool_call_id"]))
    assert any("text" in field or "content" in field for field in refused.value.fields)
    assert session.append(foldlog.user("go on")).first_seq == 1


def test_what_is_too_large_is_refused_at_once_and_for_good(session: foldlog.Session) -> None:
    (size,) = (op["bytes"] for op in CASES["lim-04"]["ops"] if op["op"] == "append_raw_size")
    with pytest.raises(errors.TooLargeError) as refused:
        session.append(foldlog.user("x" * size))
    assert refused.value.size > refused.value.limit
    assert session.append(foldlog.user("next")).first_seq == 0
