"""The error tree is the wire's list of reasons, and survives the wire."""

from __future__ import annotations

from collections import Counter

import pytest
from foldlog.core.errors import (
    FoldlogError,
    InvalidFieldError,
    SeqConflictError,
    TooLargeError,
    UnbalancedRangeError,
    by_reason,
    leaves,
)
from foldlog.v1.error_reason_pb2 import ErrorReason

PREFIX = "ERROR_REASON_"
REASONS = {each.name.removeprefix(PREFIX) for each in ErrorReason.DESCRIPTOR.values}
REASONS.remove("UNSPECIFIED")


def test_every_reason_has_exactly_one_class_and_every_class_a_reason() -> None:
    assert Counter(kind.reason for kind in leaves()) == Counter(REASONS)
    assert by_reason().keys() == REASONS


def test_every_class_below_the_root_stands_for_a_reason() -> None:
    kinds = set(FoldlogError.__subclasses__())
    while more := {sub for kind in kinds for sub in kind.__subclasses__()} - kinds:
        kinds |= more
    # The client adds errors of its own, which no server sends.
    ours = {kind for kind in kinds if kind.__module__ == FoldlogError.__module__}
    assert ours == set(leaves())


@pytest.mark.parametrize("kind", list(leaves()), ids=lambda kind: kind.reason)
def test_every_class_has_a_name_and_a_docstring_of_its_own(kind: type[FoldlogError]) -> None:
    assert kind.__name__.endswith("Error")
    assert kind.__doc__
    assert kind.__doc__ != FoldlogError.__doc__


def test_facts_are_attributes_and_in_the_text() -> None:
    error = SeqConflictError(expected_next_seq=3, next_seq=5)
    assert (error.expected_next_seq, error.next_seq) == (3, 5)
    assert str(error) == "expected next_seq 3, found 5"


def test_facts_come_back_from_the_wire_in_their_types() -> None:
    sent = UnbalancedRangeError(orphaned_result_ids=("a", "b"), unanswered_call_ids=())
    assert all(isinstance(value, str) for value in sent.metadata().values())
    back = UnbalancedRangeError.from_metadata(str(sent), sent.metadata())
    assert back.facts == sent.facts
    number = SeqConflictError.from_metadata("", {"expected_next_seq": "3", "next_seq": "5"})
    assert (number.expected_next_seq, number.next_seq) == (3, 5)


def test_metadata_of_a_newer_release_does_not_hinder() -> None:
    error = SeqConflictError.from_metadata("x", {"next_seq": "5", "later": "y"})
    assert error.facts == {"next_seq": 5, "later": "y"}


def test_a_field_is_named_with_its_path() -> None:
    error = InvalidFieldError.of("tool_call_id", "is required").within("events[2].body.message")
    assert error.fields == {"events[2].body.message.tool_call_id": "is required"}
    assert str(error) == "events[2].body.message.tool_call_id: is required"


def test_what_is_too_large_is_named_with_its_path() -> None:
    error = TooLargeError(field="keys[1]", size=9, limit=8).within("events[2].body.custom")
    assert error.facts == {"field": "events[2].body.custom.keys[1]", "size": 9, "limit": 8}
    assert str(error) == "events[2].body.custom.keys[1]: 9 exceeds the limit of 8"
