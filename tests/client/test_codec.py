"""What goes to the wire comes back as it was."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from foldlog import Header, Message, Sketch, UnknownBody, UnknownPart, Violation, ViolationKind
from foldlog.client.bodies import Body, body_from_proto, body_to_proto
from foldlog.codec import (
    datetime_of,
    header_from_proto,
    header_to_proto,
    message_from_proto,
    message_to_proto,
    time_from_proto,
    time_ns_of,
    time_to_proto,
    violation_from_proto,
    violation_to_proto,
)
from foldlog.core.errors import InvalidFieldError
from foldlog.v1 import check_pb2, event_pb2, message_pb2
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.client.strategies import BODIES, HEADERS, INT64, MAYBE_TEXTS, MESSAGES, TEXTS, TIMES_NS

SKETCHES = st.builds(
    Sketch, st.integers(0, 9), MAYBE_TEXTS, st.integers(0, 9), MAYBE_TEXTS, MAYBE_TEXTS
)
VIOLATIONS = st.builds(
    Violation,
    st.sampled_from(ViolationKind),
    INT64,
    INT64,
    INT64,
    st.lists(SKETCHES, max_size=2).map(tuple),
    st.lists(SKETCHES, max_size=2).map(tuple),
    MAYBE_TEXTS,
    st.lists(TEXTS, max_size=2).map(tuple),
    st.none() | INT64,
)


@settings(deadline=None)
@given(MESSAGES)
def test_a_message_comes_back_with_its_presence(message: Message) -> None:
    encoded = message_to_proto(message).SerializeToString()
    assert message_from_proto(message_pb2.Message.FromString(encoded)) == message


@settings(deadline=None)
@given(BODIES)
def test_a_body_comes_back_as_the_same_kind(body: Body) -> None:
    encoded = body_to_proto(body).SerializeToString()
    assert body_from_proto(event_pb2.EventBody.FromString(encoded)) == body


@settings(deadline=None)
@given(HEADERS)
def test_a_header_comes_back(header: Header) -> None:
    assert header_from_proto(header_to_proto(header, 1)) == header


@settings(deadline=None)
@given(VIOLATIONS)
def test_a_violation_comes_back(violation: Violation) -> None:
    assert violation_from_proto(violation_to_proto(violation)) == violation


@settings(deadline=None)
@given(TIMES_NS)
def test_a_time_keeps_its_nanoseconds(time_ns: int) -> None:
    assert time_from_proto(time_to_proto(time_ns)) == time_ns


@pytest.mark.parametrize("time_ns", [-62_135_596_800 * 10**9 - 1, 253_402_300_800 * 10**9])
def test_a_time_outside_of_years_1_to_9999_is_refused(time_ns: int) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        time_to_proto(time_ns, "events[0].time")
    assert "events[0].time" in refused.value.fields


@pytest.mark.parametrize("nanos", [-1, 1_000_000_000])
def test_a_time_with_nanoseconds_beyond_a_second_is_refused(nanos: int) -> None:
    with pytest.raises(InvalidFieldError):
        time_from_proto(Timestamp(seconds=0, nanos=nanos))


@settings(deadline=None)
@given(st.datetimes(timezones=st.just(timezone(timedelta(hours=5, minutes=30)))))
def test_a_datetime_keeps_its_microseconds(time: datetime) -> None:
    assert datetime_of(time_ns_of(time)) == time


def test_a_datetime_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidFieldError):
        time_ns_of(datetime(2026, 1, 1))


def test_a_time_before_1970_is_cut_to_the_microsecond_before() -> None:
    assert datetime_of(-1) == datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)


def test_a_part_of_a_newer_release_is_unknown() -> None:
    newer = message_pb2.Part.FromString(b"\xfa\x01\x01x")
    parts = message_pb2.PartList(parts=[newer])
    assert message_from_proto(message_pb2.Message(parts=parts)).content == (UnknownPart(),)


def test_a_body_of_a_newer_release_keeps_its_bytes() -> None:
    newer = b"\xfa\x01\x01x"
    body = body_from_proto(event_pb2.EventBody.FromString(newer))
    assert body == UnknownBody(newer)
    assert body_to_proto(body).SerializeToString() == newer


def test_a_violation_kind_of_a_newer_release_is_unspecified() -> None:
    violation = check_pb2.Violation.FromString(b"\x08\x63")
    assert violation_from_proto(violation).kind is ViolationKind.UNSPECIFIED
