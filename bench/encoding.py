"""The workload's messages in Foldlog's form."""

from __future__ import annotations

import foldlog
from foldlog.client.new_events import Appendable
from foldlog.v1.event_pb2 import EventBody, NewEvent
from foldlog.v1.message_pb2 import ROLE_ASSISTANT, ROLE_TOOL, ROLE_USER, Message, ToolCall

from bench.workload import Json


def message(given: Json) -> Message:
    """Return a message in Foldlog's form."""
    made = Message(text=given["content"])
    match given["role"]:
        case "user":
            made.role = ROLE_USER
        case "tool":
            made.role = ROLE_TOOL
            made.tool_call_id = given["tool_call_id"]
        case _:
            made.role = ROLE_ASSISTANT
            made.tool_calls.extend(_call(each) for each in given.get("tool_calls", ()))
    return made


def _call(given: Json) -> ToolCall:
    return ToolCall(id=given["id"], **given["function"])


def event(given: Json) -> NewEvent:
    """Return the event that says a message."""
    return NewEvent(body=EventBody(message=message(given)))


def appendable(given: Json) -> Appendable:
    """Return a message in the form that the client library takes."""
    match given["role"]:
        case "user":
            return foldlog.user(given["content"])
        case "tool":
            return foldlog.tool_result(given["content"], tool_call_id=given["tool_call_id"])
    calls = [
        foldlog.ToolCall(each["id"], **each["function"]) for each in given.get("tool_calls", ())
    ]
    return foldlog.assistant(given["content"], tool_calls=calls)
