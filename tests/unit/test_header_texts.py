"""Headers without their large texts, and whole again."""

from __future__ import annotations

from hashlib import sha256

import pytest
from foldlog.application.texts import LARGE_BYTES, cut, whole
from foldlog.v1.event_pb2 import EventBody, RequestHeader
from hypothesis import given
from hypothesis import strategies as st

LONG = "Zo\u00eb \u0000 " * LARGE_BYTES
TEXTS = st.sampled_from(["", "x", "x" * (LARGE_BYTES - 1), "x" * LARGE_BYTES, LONG])


@given(TEXTS, st.lists(TEXTS, max_size=3), st.none() | st.just("{}"), st.integers(0, 3))
def test_a_header_is_put_together_again_byte_for_byte(
    prompt: str, tools: list[str], extra: str | None, reason: int
) -> None:
    header = RequestHeader(model="m", system_prompt=prompt, tools_json=tools, reason=reason)  # type: ignore[arg-type]
    body = EventBody(request_header=header, extra_json=extra).SerializeToString()
    found = cut(body)
    if found is None:
        assert len(prompt.encode()) < LARGE_BYTES
        assert sum(map(len, tools)) < LARGE_BYTES
        return
    assert len(found.body) < 2 * LARGE_BYTES
    known = {sha256(content).digest(): content for content in found.contents}
    assert whole(found.body, found.texts, known.__getitem__) == body


@pytest.mark.parametrize("others", [b"", b"\xfa\x01\x02hi"], ids=["known", "of a newer release"])
def test_fields_in_another_order_are_left_as_they_came(others: bytes) -> None:
    prompt = RequestHeader(system_prompt=LONG).SerializeToString() + others
    model = RequestHeader(model="m").SerializeToString()
    ordered = EventBody(request_header=RequestHeader.FromString(model + prompt))
    assert cut(ordered.SerializeToString()) is not None
    tag_and_size = ordered.SerializeToString()[: -len(prompt + model)]
    body = tag_and_size + prompt + model
    assert EventBody.FromString(body) == ordered
    assert cut(body) is None


def test_small_headers_are_not_looked_at() -> None:
    assert (
        cut(EventBody(request_header=RequestHeader(system_prompt="x")).SerializeToString()) is None
    )
