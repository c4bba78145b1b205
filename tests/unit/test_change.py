"""What kind of change one request is to the one before."""

from __future__ import annotations

import pytest
from foldlog.core.change import ChangeKind, header_change, same_but_for_bytes, tokens_of
from foldlog.core.header import Header
from foldlog.core.message import Message, OpaquePart, Role

F, G = '{"name": "f"}', '{"name": "g"}'


@pytest.mark.parametrize(
    ("before", "after", "kind", "fields"),
    [
        (None, None, ChangeKind.UNSPECIFIED, ()),
        (None, Header(), ChangeKind.UNSPECIFIED, ()),
        (None, Header(model="m"), ChangeKind.HEADER, ("model",)),
        (
            Header(tools_json=(F, G)),
            Header(tools_json=(G, F)),
            ChangeKind.TOOLS_REORDERED,
            ("tools_json",),
        ),
        (
            Header(tools_json=(F, G)),
            Header(tools_json=('{"name":"g"}', F)),
            ChangeKind.TOOLS_REORDERED,
            ("tools_json",),
        ),
        (
            Header(tools_json=(F, F, G)),
            Header(tools_json=(F, G, G)),
            ChangeKind.HEADER,
            ("tools_json",),
        ),
        (
            Header(model="m", tools_json=(F, G)),
            Header(model="n", tools_json=(G, F)),
            ChangeKind.HEADER,
            ("model", "tools_json"),
        ),
        (
            Header(tools_json=(F,)),
            Header(tools_json=('{"name":"f"}',)),
            ChangeKind.BYTES,
            ("tools_json",),
        ),
        (
            Header(parameters_json="{}"),
            Header(),
            ChangeKind.BYTES,
            ("parameters_json",),
        ),
        (
            Header(provider="p", reasoning_effort="low"),
            Header(provider="q", reasoning_effort="high"),
            ChangeKind.HEADER,
            ("provider", "reasoning_effort"),
        ),
    ],
)
def test_header_changes(
    before: Header | None, after: Header | None, kind: ChangeKind, fields: tuple[str, ...]
) -> None:
    assert header_change(before, after) == (kind, fields)


def said(json: str = "{}", **fields: str) -> Message:
    return Message(Role.USER, (OpaquePart("k", json),), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("other", "is_same"),
    [
        (said('{"a":1}'), True),
        (said('{"a": 1.0}'), False),
        (said('{"a": 1}', metadata_json="{ }"), False),
        (said('{"a": 1}', reasoning="hm"), False),
        (said('{"a": 1}', name=""), False),
    ],
)
def test_messages_that_say_the_same(other: Message, is_same: bool) -> None:
    assert same_but_for_bytes(said('{"a": 1}'), other) is is_same


def test_metadata_is_compared_as_json() -> None:
    assert same_but_for_bytes(said(metadata_json="{}"), said(metadata_json="{ }"))
    assert not same_but_for_bytes(said(metadata_json="{}"), said(metadata_json="[]"))


def test_system_messages_are_compared_by_content() -> None:
    assert not same_but_for_bytes(Message(Role.SYSTEM, "a"), Message(Role.SYSTEM, "b"))


def test_a_token_is_about_four_bytes() -> None:
    assert [tokens_of(size) for size in (0, 3, 4, 4_001)] == [0, 0, 1, 1_000]
