"""The encoding of a request."""

from __future__ import annotations

from hashlib import sha256

import pytest
from foldlog.core.errors import InvalidFieldError
from foldlog.core.header import Header
from foldlog.core.message import Message, Role, ToolCallPart
from foldlog.core.request import RequestHash, encoded_header, encoded_message, request_digest

HEADER = Header(provider="p", model="m", tools_json=("{}",))
MESSAGES = [
    (Message(Role.SYSTEM, "S"), None),
    (Message(Role.USER, "a", reasoning="r", metadata_json="{}"), "g"),
]


def test_a_hash_grows_as_the_encoding_does() -> None:
    hashed = RequestHash(HEADER)
    encoding = encoded_header(HEADER)
    for message, group in MESSAGES:
        assert hashed.digest == sha256(encoding).digest()
        part = encoded_message(message, group)
        hashed.add(part)
        encoding += part
    assert hashed.digest == sha256(encoding).digest() == request_digest(HEADER, MESSAGES)
    assert (hashed.count, hashed.size_bytes) == (2, len(encoding))


def test_a_copy_goes_its_own_way() -> None:
    hashed = RequestHash(HEADER)
    twin = hashed.copy()
    twin.add(b"x")
    assert hashed.digest == sha256(encoded_header(HEADER)).digest()
    assert (hashed.count, twin.count) == (0, 1)


@pytest.mark.parametrize(
    "changed",
    [
        Message(Role.USER, "a"),
        Message(Role.USER, "a", reasoning="r"),
        Message(Role.USER, "a", reasoning="r", metadata_json="{ }"),
        Message(Role.USER, "a", reasoning="", metadata_json="{}"),
    ],
)
def test_reasoning_and_metadata_count(changed: Message) -> None:
    assert encoded_message(changed, "g") != encoded_message(*MESSAGES[1])


def test_groups_and_system_texts_count() -> None:
    message = MESSAGES[1][0]
    assert len({encoded_message(message, group) for group in (None, "", "g")}) == 3
    one, other = Message(Role.SYSTEM, "S"), Message(Role.SYSTEM, "T")
    assert encoded_message(one) != encoded_message(other)


def test_what_has_no_encoding_is_refused() -> None:
    for message in (Message(Role.USER, "\ud800"), Message(Role.USER, (ToolCallPart(2**32),))):
        with pytest.raises(InvalidFieldError):
            encoded_message(message)
