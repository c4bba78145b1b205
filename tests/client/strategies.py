"""Random messages, bodies and events, as the wire can carry them."""

from __future__ import annotations

from foldlog import (
    AttachmentPart,
    Custom,
    Header,
    HeaderSnapshot,
    Message,
    OpaquePart,
    ReasoningPart,
    Rewind,
    StepEnd,
    StepStart,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolCallState,
    TurnEnd,
    TurnStart,
    UnknownPart,
    Usage,
)
from hypothesis import strategies as st

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["", "\x00", "🙂", '{"a":1.0}']
)
MAYBE_TEXTS = st.none() | TEXTS
INT64 = st.integers(-(2**63), 2**63 - 1)
COUNTS = st.none() | st.integers(0, 2**64 - 1)
NUMBERS = st.none() | INT64
PARTS = st.one_of(
    st.builds(TextPart, TEXTS),
    st.builds(AttachmentPart, st.binary(max_size=32), TEXTS, MAYBE_TEXTS, COUNTS),
    st.builds(ReasoningPart, text=TEXTS),
    st.builds(ReasoningPart, json=TEXTS),
    st.builds(ReasoningPart),
    st.builds(ToolCallPart, st.integers(0, 2**32 - 1)),
    st.builds(OpaquePart, TEXTS, TEXTS),
    st.builds(UnknownPart),
)
TOOL_CALLS = st.builds(ToolCall, MAYBE_TEXTS, MAYBE_TEXTS, MAYBE_TEXTS)
MESSAGES = st.builds(
    Message,
    role=st.integers(0, 4) | st.integers(-(2**31), 2**31 - 1),
    content=MAYBE_TEXTS | st.lists(PARTS, max_size=3).map(tuple),
    tool_calls=st.lists(TOOL_CALLS, max_size=2).map(tuple),
    tool_call_id=MAYBE_TEXTS,
    name=MAYBE_TEXTS,
    reasoning=MAYBE_TEXTS,
    metadata_json=MAYBE_TEXTS,
)
HEADERS = st.builds(
    Header, TEXTS, TEXTS, TEXTS, TEXTS, st.lists(TEXTS, max_size=2).map(tuple), TEXTS
)
USAGES = st.none() | st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
BODIES = st.one_of(
    MESSAGES,
    st.builds(ToolCallState, *([MAYBE_TEXTS] * 4), st.integers(0, 5)),
    st.builds(TurnStart, NUMBERS, MAYBE_TEXTS),
    st.builds(TurnEnd, NUMBERS, MAYBE_TEXTS, USAGES),
    st.builds(StepStart, NUMBERS, MAYBE_TEXTS),
    st.builds(StepEnd, NUMBERS, MAYBE_TEXTS, USAGES),
    st.builds(HeaderSnapshot, HEADERS, st.integers(0, 4)),
    st.builds(Rewind, INT64),
    st.builds(Custom, TEXTS, st.binary(max_size=8), st.lists(TEXTS, max_size=2).map(tuple)),
)
TIMES_NS = st.integers(-62_135_596_800 * 10**9, 253_402_300_800 * 10**9 - 1)
