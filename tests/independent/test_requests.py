"""Every request comes out again as it was built, here and from an export read without this code."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from foldlog.v1 import message_pb2
from google.protobuf.json_format import MessageToDict, ParseDict
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import DURABLE_BACKENDS
from tests.contract.calls import Calls
from tests.contract.requesting import explained, rebuilt, verified
from tests.independent.rebuilding import (
    encoded_header,
    encoded_message,
    lines_of,
    request_at,
    steps_of,
)
from tests.independent.stories import Story
from tests.served import Served

EXAMPLES = settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
VECTORS = Path(__file__).parents[2] / "protos" / "foldlog" / "v1" / "vectors.json"


def assert_the_same_again(story: Story) -> None:
    """Compare each request that was built with the one that is built now, in three ways."""
    for log, seq, request in story.told():
        assert rebuilt(log, step_seq=seq) == request
        assert rebuilt(log, step_seq=seq, independent=True) == request
        assert rebuilt(log, at_seq=request.about.built_at_next_seq - 1).sha256 == request.sha256


def assert_the_same_from_exports(story: Story) -> None:
    """Compare them with what the standard library makes of an export, and so the cache report."""
    for branch in story.branches:
        lines = lines_of(branch.log.export())
        steps = steps_of(lines)
        encodings = {seq: request_at(lines, steps[seq]) for seq in steps}
        for seq, request in branch.steps.items():
            encoding = encodings[seq]
            assert encoding is not None
            assert sha256(encoding).digest() == request.sha256, seq
        assert_the_same_breaks(branch.log, encodings)


def assert_the_same_breaks(log: Calls, encodings: dict[int, bytes | None]) -> None:
    """An extension is a request whose encoding begins with that of the one before."""
    seqs = sorted(encodings)
    breaks = [
        after
        for before, after in pairwise(seqs)
        if not (encodings[after] or b"").startswith(encodings[before] or b"")
    ]
    assert [change.step_seq for change in explained(log).changes] == breaks


def assert_records_hold(story: Story) -> None:
    """Every recorded request can be made again."""
    for branch in story.branches:
        assert not verified(branch.log).mismatches


@given(seed=st.integers(0, 2**32))
@EXAMPLES
def test_every_request_of_a_random_session_comes_out_again(stub: Any, seed: int) -> None:
    story = Story(Calls.create(stub), seed)
    story.grow(40)
    assert_the_same_again(story)
    assert_the_same_from_exports(story)
    assert_records_hold(story)


@pytest.mark.parametrize("backend", DURABLE_BACKENDS)
def test_requests_come_out_again_from_a_process_that_built_none_of_them(
    serve: Callable[..., Served], backend: str
) -> None:
    served = serve(backend)
    stories = [Story(Calls.create(served.stub), seed) for seed in range(4)]
    for _ in range(2):
        for story in stories:
            story.grow(25)
        served.restart("kill9")
    for story in stories:
        assert_the_same_again(story)
        assert_the_same_from_exports(story)
        assert_records_hold(story)


REQUESTS = json.loads(VECTORS.read_text())["requests"]


@pytest.mark.parametrize("vector", REQUESTS, ids=[each["name"] for each in REQUESTS])
def test_the_vectors_say_the_same(vector: dict[str, Any]) -> None:
    encoding = encoded_header(vector["header"])
    for event in vector["messages"]:
        said = ParseDict(event["message"], message_pb2.Message())
        shown = MessageToDict(said, preserving_proto_field_name=True)
        encoding += encoded_message({**event, "message": shown})
    assert encoding.hex() == vector["encoding"]
    assert sha256(encoding).hexdigest() == vector["sha256"]
