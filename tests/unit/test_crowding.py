"""Fields are counted before they are decoded, nested ones too."""

from __future__ import annotations

import pytest
from foldlog.server.crowding import is_crowded
from foldlog.v1 import event_pb2, message_pb2, service_pb2

LIMIT = 100


def check(messages: int, parts: int = 0) -> bytes:
    """Return a CheckRequest with 1 + messages * (1 + parts) fields, and one more if any has parts.

    The parts are in the last message.
    """
    request = service_pb2.CheckRequestRequest(session_id="s" * 500)
    request.messages.extend(message_pb2.Message() for _ in range(messages))
    if parts:
        request.messages[-1].parts.parts.extend(message_pb2.Part() for _ in range(parts))
    return request.SerializeToString()


@pytest.mark.parametrize(
    ("data", "crowded"),
    [
        pytest.param(check(LIMIT - 1), False, id="at the limit"),
        pytest.param(check(LIMIT), True, id="over it"),
        pytest.param(check(1, LIMIT - 3), False, id="nested, at the limit"),
        pytest.param(check(1, LIMIT - 2), True, id="nested, over it"),
        pytest.param(b"\x0a\xff\xff\x03" + b"x" * 65_535, False, id="one long text"),
        pytest.param(b"\xff" * 300, False, id="no message"),
        pytest.param(b"\x7b" * LIMIT * 3, True, id="groups"),
        pytest.param(b"\x12\xff\xff\xff\xff\x0f" + b"\x12\0" * 200, True, id="a length that lies"),
    ],
)
def test_fields_are_counted(data: bytes, crowded: bool) -> None:
    assert is_crowded(data, service_pb2.CheckRequestRequest, LIMIT) is crowded


@pytest.mark.parametrize(("count", "crowded"), [(LIMIT - 3, False), (5 * LIMIT, True)])
def test_elements_of_packed_lists_are_counted(count: int, crowded: bool) -> None:
    request = service_pb2.ListEventsRequest(
        session_id="s" * 300, types=[event_pb2.EVENT_TYPE_CUSTOM] * count, page_token="t"
    )
    encoded = request.SerializeToString()
    assert is_crowded(encoded, service_pb2.ListEventsRequest, LIMIT) is crowded


def test_what_is_too_short_to_be_crowded_is_not_looked_at() -> None:
    assert not is_crowded(b"\x12\0" * LIMIT, service_pb2.CheckRequestRequest, LIMIT)
