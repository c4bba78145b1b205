"""OpenAI Responses requests, from and to messages and a header.

The items one response put out, such as reasoning, a message and calls, become one assistant
message; every other item becomes a message of its own. Items no field fits are opaque parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from foldlog.converters import responses_items as items
from foldlog.converters.converted import Converted
from foldlog.converters.json_text import require_objects, require_request
from foldlog.converters.request import RequestShape
from foldlog.converters.responses_natural import NAME
from foldlog.core.message import Message

name: Final = NAME
version: Final = "1"

SHAPE = RequestShape(name, messages="input", effort=("reasoning", "effort"), system="instructions")


def from_request(request: Mapping[str, object]) -> Converted:
    """Return the request in the log's terms.

    Raises InvalidFieldError, naming the path, for what is malformed or what the log cannot hold.
    """
    given = require_request(request)
    held = given.get(SHAPE.messages)
    header = SHAPE.header_of(given)
    if isinstance(held, str):
        return Converted((items.bare_text(held),), header=header)
    originals = [] if held is None else require_objects(held, SHAPE.messages)
    return Converted(tuple(_messages(originals)), header=header)


def to_request(converted: Converted) -> dict[str, object]:
    """Return the request. Equal to the original where the messages came from one."""
    kinds: dict[str, str] = {}
    found: list[object] = []
    for index, message in enumerate(converted.messages):
        kinds |= items.kinds_of_calls(message)
        found += items.items_of(message, kinds, f"messages[{index}]")
    only = converted.messages[0] if len(converted.messages) == 1 else None
    is_bare = only is not None and items.is_bare(only)
    held = only.content if only is not None and is_bare else found
    return SHAPE.request_of(converted.header, held, more_system=[])


def _messages(originals: list[items.Item]) -> Iterator[Message]:
    kinds: dict[str, str] = {}
    for run in _runs(originals):
        message = items.message_of(run, kinds)
        kinds |= items.kinds_of_calls(message)
        yield message


def _runs(originals: list[items.Item]) -> Iterator[list[items.Item]]:
    """Split the items into those of one message each."""
    run: list[items.Item] = []
    for item in originals:
        if run and not items.is_continued(run[-1], item):
            yield run
            run = []
        run.append(item)
    if run:
        yield run
