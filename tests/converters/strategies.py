"""Hypothesis strategies for provider requests: everything the APIs have, and what they may get."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

Strategy = st.SearchStrategy[Any]
Draw = Callable[[Strategy], Any]

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ["", "hi", "\x00", "naïve 🙂", "\u2028", '{"a": 1}', "a" * 40]
)
NUMBERS = (
    st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0, -0.0, 0.0, 1, 1.0, True, 10**30, 2**63, 1e22, 5e-324, 9007199254740993])
)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=3)
IDS = st.sampled_from(["c1", "c2", "c3", ""]) | TEXTS
CACHE_CONTROL = st.sampled_from([{"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}, None])
EXTRA_KEYS = st.sampled_from(
    ["x_future", "cache_control", "foldlog.anthropic", "foldlog.openai_chat", "is", "difference"]
)
IMAGES_BY_URL = st.sampled_from(["https://example.org/a.png", "data:image/png;base64,iVBORw0KGgo="])


@st.composite
def objects_of(draw: Draw, required: dict[str, Strategy], optional: dict[str, Strategy]) -> Any:
    """Objects with these members and sometimes others, in any order."""
    names = [name for name in optional if draw(st.integers(0, 3)) == 0]
    members = {**required, **{name: optional[name] for name in names}}
    found = {name: draw(value) for name, value in members.items()}
    if draw(st.integers(0, 7)) == 0:
        found[draw(EXTRA_KEYS | TEXTS)] = draw(VALUES)
    if draw(st.integers(0, 3)) > 0:
        return found
    return dict(draw(st.permutations(list(found.items()))))


def block(kind: str, /, *required: tuple[str, Strategy], **optional: Strategy) -> Strategy:
    """Content blocks of a type, sometimes with a cache breakpoint."""
    return objects_of(
        {"type": st.just(kind), **dict(required)}, {"cache_control": CACHE_CONTROL, **optional}
    )


UNKNOWN_BLOCKS = block("future_block", ("payload", VALUES)) | block("fields", ("is_error", VALUES))


def contents(blocks: Strategy) -> Strategy:
    """Contents: a text, or a list of blocks."""
    return TEXTS | st.lists(blocks, max_size=4)


# OpenAI Chat Completions

CHAT_TEXTS = block("text", ("text", TEXTS), annotations=st.just([]))
CHAT_USER_BLOCKS = st.one_of(
    CHAT_TEXTS,
    block("image_url", ("image_url", st.fixed_dictionaries({"url": IMAGES_BY_URL}))),
    block("input_audio", ("input_audio", st.just({"data": "UklGRg==", "format": "wav"}))),
    block("file", ("file", st.just({"file_id": "file-1"}))),
    block("text"),
    UNKNOWN_BLOCKS,
)
CHAT_FUNCTIONS = objects_of({"name": TEXTS, "arguments": TEXTS}, {})
CHAT_CALLS = st.one_of(
    objects_of({"id": IDS, "type": st.just("function"), "function": CHAT_FUNCTIONS}, {}),
    objects_of(
        {
            "id": IDS,
            "type": st.just("custom"),
            "custom": objects_of({"name": TEXTS, "input": TEXTS}, {}),
        },
        {},
    ),
    objects_of({}, {"id": VALUES, "type": SCALARS, "function": VALUES, "custom": VALUES}),
)
NAMED = {"name": TEXTS | st.none()}
CHAT_MESSAGES = st.one_of(
    objects_of(
        {"role": st.sampled_from(["system", "developer"]), "content": contents(CHAT_TEXTS)}, NAMED
    ),
    objects_of({"role": st.just("user"), "content": contents(CHAT_USER_BLOCKS)}, NAMED),
    objects_of(
        {"role": st.just("assistant")},
        {
            **NAMED,
            "content": st.none()
            | contents(CHAT_TEXTS | block("refusal", ("refusal", TEXTS)) | UNKNOWN_BLOCKS),
            "tool_calls": st.none() | st.lists(CHAT_CALLS, max_size=3),
            "refusal": st.none() | TEXTS,
            "audio": st.none() | st.just({"id": "audio_1"}),
            "function_call": st.none() | CHAT_FUNCTIONS,
            "reasoning_content": st.none() | TEXTS,
            "reasoning": VALUES,
            "annotations": st.just([]),
        },
    ),
    objects_of(
        {"role": st.just("tool"), "tool_call_id": IDS, "content": contents(CHAT_USER_BLOCKS)}, NAMED
    ),
)
TOOLS = st.lists(OBJECTS | st.just({"type": "function", "function": {"name": "f"}}), max_size=2)
PARAMETERS: dict[str, Strategy] = {
    "tools": st.none() | TOOLS,
    "tool_choice": st.sampled_from(["auto", None, {"type": "tool", "name": "f"}]),
    "temperature": NUMBERS,
    "max_tokens": st.integers(),
    "stop": st.none() | TEXTS | st.lists(TEXTS, max_size=2),
    "metadata": OBJECTS,
    "stream": st.booleans(),
}
CHAT_REQUESTS = objects_of(
    {"model": TEXTS | st.none(), "messages": st.lists(CHAT_MESSAGES, max_size=5)},
    {**PARAMETERS, "reasoning_effort": TEXTS | st.none()},
)

# Anthropic Messages

SOURCES = st.sampled_from(
    [
        {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
        {"type": "url", "url": "https://example.org/a.png"},
        {"type": "file", "file_id": "file_1"},
    ]
)
ANTHROPIC_TEXTS = block("text", ("text", TEXTS), citations=st.none() | st.just([{"type": "page"}]))
ANTHROPIC_USER_BLOCKS = st.one_of(
    ANTHROPIC_TEXTS,
    block("image", ("source", SOURCES)),
    block("document", ("source", SOURCES), title=TEXTS),
    block("text", ("text", SCALARS)),
    UNKNOWN_BLOCKS,
)
TOOL_RESULTS = block(
    "tool_result",
    ("tool_use_id", IDS),
    content=st.none() | contents(ANTHROPIC_USER_BLOCKS),
    is_error=st.booleans() | st.none(),
)
ANTHROPIC_ASSISTANT_BLOCKS = st.one_of(
    ANTHROPIC_TEXTS,
    block("thinking", ("thinking", TEXTS), ("signature", TEXTS)),
    block("redacted_thinking", ("data", TEXTS)),
    block("tool_use", ("id", IDS), ("name", TEXTS), ("input", OBJECTS)),
    block("tool_use", id=VALUES, name=VALUES, input=VALUES),
    block("server_tool_use", ("id", IDS), ("name", st.just("web_search")), ("input", OBJECTS)),
    block("web_search_tool_result", ("tool_use_id", IDS), ("content", st.lists(OBJECTS))),
    UNKNOWN_BLOCKS,
)
ANTHROPIC_MESSAGES = st.one_of(
    objects_of({"role": st.just("user")}, {"content": st.none() | contents(ANTHROPIC_USER_BLOCKS)}),
    objects_of(
        {
            "role": st.just("user"),
            "content": st.lists(TOOL_RESULTS | ANTHROPIC_USER_BLOCKS, max_size=5),
        },
        {},
    ),
    objects_of({"role": st.just("assistant"), "content": contents(ANTHROPIC_ASSISTANT_BLOCKS)}, {}),
    objects_of({"role": st.just("system"), "content": contents(ANTHROPIC_TEXTS)}, {}),
)
# Blocks that stand in one message in earnest, several of them and mixed.
INTERLEAVED = st.one_of(
    block("text", ("text", TEXTS)),
    block("thinking", ("thinking", TEXTS), ("signature", TEXTS)),
    block("tool_use", ("id", IDS), ("name", TEXTS), ("input", OBJECTS)),
)
MIXED_RESULTS = TOOL_RESULTS | block("text", ("text", TEXTS))
ANTHROPIC_TURNS = st.tuples(
    st.fixed_dictionaries(
        {"role": st.just("assistant"), "content": st.lists(INTERLEAVED, min_size=2, max_size=6)}
    ),
    st.fixed_dictionaries(
        {"role": st.just("user"), "content": st.lists(MIXED_RESULTS, min_size=2, max_size=5)}
    ),
).map(list)
ANTHROPIC_REQUESTS = objects_of(
    {"model": TEXTS, "messages": st.lists(ANTHROPIC_MESSAGES, max_size=5) | ANTHROPIC_TURNS},
    {
        **PARAMETERS,
        "system": VALUES | st.lists(ANTHROPIC_USER_BLOCKS, max_size=3),
        "thinking": st.just({"type": "enabled", "budget_tokens": 2048}),
        "output_config": VALUES | objects_of({"effort": TEXTS}, {"format": VALUES}),
    },
)

# OpenAI Responses

RESPONSES_BLOCKS = st.one_of(
    block("input_text", ("text", TEXTS)),
    block("output_text", ("text", TEXTS), annotations=st.just([]), logprobs=st.just([])),
    block("input_image", ("image_url", IMAGES_BY_URL), detail=st.just("auto")),
    block("input_file", ("file_id", TEXTS)),
    block("refusal", ("refusal", TEXTS)),
    block("reasoning", ("text", TEXTS)),
    UNKNOWN_BLOCKS,
)
ITEM_KEYS: dict[str, Strategy] = {
    "id": st.just("item_1") | st.none(),
    "status": st.sampled_from(["completed", "incomplete", None]),
}


def item(kind: str, /, *required: tuple[str, Strategy], **optional: Strategy) -> Strategy:
    """Items of a type, sometimes with an id and a status."""
    return objects_of({"type": st.just(kind), **dict(required)}, {**ITEM_KEYS, **optional})


OUTPUT_VALUES = st.none() | contents(RESPONSES_BLOCKS)
RESPONSES_ITEMS = st.one_of(
    objects_of(
        {
            "role": st.sampled_from(["user", "system", "developer", "assistant"]),
            "content": st.none() | contents(RESPONSES_BLOCKS),
        },
        {**ITEM_KEYS, "type": st.just("message"), "phase": st.just("commentary")},
    ),
    item("message", ("role", st.just("assistant")), ("content", contents(RESPONSES_BLOCKS))),
    item(
        "reasoning",
        ("summary", st.lists(block("summary_text", ("text", TEXTS)), max_size=2)),
        encrypted_content=TEXTS | st.none(),
        content=TEXTS | st.lists(OBJECTS, max_size=1),
    ),
    item("function_call", ("call_id", IDS), ("name", TEXTS), ("arguments", TEXTS)),
    item("function_call", call_id=VALUES, name=VALUES, arguments=VALUES),
    item("function_call_output", ("call_id", IDS), ("output", OUTPUT_VALUES)),
    item("custom_tool_call", ("call_id", IDS), ("name", TEXTS), ("input", TEXTS)),
    item("custom_tool_call_output", ("call_id", IDS), ("output", OUTPUT_VALUES)),
    item("computer_call", ("call_id", IDS), ("action", OBJECTS)),
    item("computer_call_output", ("call_id", IDS), ("output", OBJECTS)),
    item("web_search_call", action=OBJECTS),
    item("mcp_approval_response", ("approval_request_id", IDS), ("approve", st.booleans())),
    item("future_item", content=TEXTS | VALUES),
    item("future_output", output=VALUES, call_id=VALUES),
)
# Items that one answer puts out in earnest, several of them and mixed.
ANSWER_ITEMS = st.one_of(
    item("reasoning", ("summary", st.just([])), encrypted_content=TEXTS),
    item("message", ("role", st.just("assistant")), ("content", contents(RESPONSES_BLOCKS))),
    item("function_call", ("call_id", IDS), ("name", TEXTS), ("arguments", TEXTS)),
)
ANSWERS = st.lists(ANSWER_ITEMS, min_size=2, max_size=6)
RESPONSES_REQUESTS = objects_of(
    {"model": TEXTS},
    {
        **PARAMETERS,
        "input": TEXTS | st.none() | st.lists(RESPONSES_ITEMS, max_size=6),
        "instructions": TEXTS | st.none(),
        "reasoning": VALUES | objects_of({"effort": TEXTS}, {"summary": st.just("auto")}),
        "include": st.just(["reasoning.encrypted_content"]),
    },
) | objects_of({"input": ANSWERS | st.lists(RESPONSES_ITEMS, max_size=6)}, {"model": TEXTS})
