"""What is done with the wire's messages is what would be done with their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from foldlog.application.messages import Digests, call_ids_of, digest_of, judge_message
from foldlog.codec import message_from_proto
from foldlog.core.digest import message_digest
from foldlog.core.errors import InvalidFieldError
from foldlog.core.validation import validate_message
from foldlog.v1 import message_pb2 as pb
from hypothesis import given
from hypothesis import strategies as st

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
MAYBE = st.none() | TEXTS
JSON = st.none() | st.sampled_from(["", "{}", "[[1]]", '{"a": 1, "a": 2}', "[[[[]]]]", "NaN"])
PARTS = st.one_of(
    st.builds(pb.Part, text=TEXTS),
    st.builds(
        pb.Part,
        attachment=st.builds(
            pb.AttachmentRef,
            sha256=st.binary(min_size=31, max_size=32),
            media_type=st.sampled_from(["text/plain", "text"]),
            name=MAYBE,
            size_bytes=st.none() | st.integers(0, 2**64 - 1),
        ),
    ),
    st.builds(
        pb.Part,
        reasoning=st.builds(pb.Reasoning, text=TEXTS) | st.builds(pb.Reasoning, json=TEXTS),
    ),
    st.builds(pb.Part, tool_call_index=st.integers(0, 3)),
    st.builds(pb.Part, opaque=st.builds(pb.OpaquePart, kind=TEXTS, json=TEXTS)),
    st.just(pb.Part()),
    st.just(pb.Part(reasoning=pb.Reasoning())),
)
CALLS = st.lists(st.builds(pb.ToolCall, id=MAYBE, name=MAYBE, arguments=MAYBE), max_size=3)
CONTENTS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    TEXTS.map(lambda text: {"text": text}),
    st.lists(PARTS, max_size=3).map(lambda parts: {"parts": pb.PartList(parts=parts)}),
)


@st.composite
def messages(draw: st.DrawFn) -> pb.Message:
    """Any message, unknown roles and what is refused among them."""
    return pb.Message(
        role=draw(st.integers(-1, 6) | st.just(2**31 - 1)),  # type: ignore[arg-type]
        tool_calls=draw(CALLS),
        tool_call_id=draw(MAYBE),
        name=draw(MAYBE),
        reasoning=draw(MAYBE),
        metadata_json=draw(JSON),
        **draw(CONTENTS),
    )


@given(messages())
def test_digests_and_calls_are_those_of_the_value(pb_message: pb.Message) -> None:
    value = message_from_proto(pb_message)
    assert digest_of(pb_message) == message_digest(value)
    assert call_ids_of(pb_message) == value.call_ids


@given(st.lists(messages(), max_size=5), st.integers(1, 3))
def test_digests_that_are_remembered_are_the_same(many: list[pb.Message], most: int) -> None:
    with patch("foldlog.application.messages.MOST_KNOWN", most):
        digests = Digests()
        for each in [*many, *many]:
            assert digests.of(each) == digest_of(each)


@given(messages())
def test_it_is_judged_as_its_value_is(pb_message: pb.Message) -> None:
    value = message_from_proto(pb_message)
    wanted = refused(lambda: validate_message(value, max_json_depth=3))
    assert refused(lambda: judge_message(pb_message, 3)) == wanted


def refused(judge: Callable[[], None]) -> object:
    """Return what is said to be wrong, if anything is."""
    try:
        judge()
    except InvalidFieldError as error:
        return error.fields
    return None
