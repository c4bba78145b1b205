"""Foldlog's client library: durable sessions of LLM agents, and the check of what the model saw.

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foldlog.client import errors
    from foldlog.client.append_stream import AppendStream
    from foldlog.client.async_append_stream import AsyncAppendStream
    from foldlog.client.async_client import AsyncClient, AsyncSession
    from foldlog.client.bodies import (
        Body,
        Custom,
        HeaderSnapshot,
        Rewind,
        StepEnd,
        StepStart,
        ToolCallState,
        TurnEnd,
        TurnStart,
        UnknownBody,
        Usage,
    )
    from foldlog.client.client import Client, Session
    from foldlog.client.new_events import (
        Appendable,
        EntryRange,
        NewEvent,
        Placed,
        assistant,
        at,
        custom,
        events_of,
        grouped,
        placed,
        replacing,
        request_header,
        step_end,
        step_start,
        system,
        tool_call,
        tool_result,
        turn_end,
        turn_start,
        user,
        with_extra,
    )
    from foldlog.client.operations.checking import CheckMode
    from foldlog.client.recovery import (
        Recovery,
        RecoveryPlan,
        SuggestedRange,
        UnresolvedCall,
    )
    from foldlog.client.retries import RetryPolicy
    from foldlog.client.state import SendLimits
    from foldlog.client.stored import (
        AppliedReplace,
        CaughtUp,
        Created,
        Deleted,
        Event,
        EventState,
        Fact,
        FeedItem,
        Forked,
        HistoryDropped,
        UnknownFact,
        Updated,
        WriterClosed,
        WriterOpened,
    )
    from foldlog.client.values import (
        Appended,
        ChainFault,
        CheckResult,
        CutState,
        Diff,
        FoldedMessage,
        ForkPoint,
        HistoryCut,
        ReplaceResult,
        Restored,
        Rewound,
        SessionInfo,
        Verification,
    )
    from foldlog.core.event import EventType, PositionRange, ToolCallPhase
    from foldlog.core.header import Header, HeaderReason
    from foldlog.core.invariant import Sketch, Violation, ViolationKind
    from foldlog.core.message import (
        AttachmentPart,
        Message,
        OpaquePart,
        Part,
        ReasoningPart,
        Role,
        TextPart,
        ToolCall,
        ToolCallPart,
        UnknownPart,
    )
    from foldlog.core.recovery import CallRisk, OwedCall

_MODULES = {
    "foldlog.client.append_stream": ("AppendStream",),
    "foldlog.client.async_append_stream": ("AsyncAppendStream",),
    "foldlog.client.async_client": (
        "AsyncClient",
        "AsyncSession",
    ),
    "foldlog.client.bodies": (
        "Body",
        "Custom",
        "HeaderSnapshot",
        "Rewind",
        "StepEnd",
        "StepStart",
        "ToolCallState",
        "TurnEnd",
        "TurnStart",
        "UnknownBody",
        "Usage",
    ),
    "foldlog.client.client": (
        "Client",
        "Session",
    ),
    "foldlog.client.new_events": (
        "Appendable",
        "EntryRange",
        "NewEvent",
        "Placed",
        "assistant",
        "at",
        "custom",
        "events_of",
        "grouped",
        "placed",
        "replacing",
        "request_header",
        "step_end",
        "step_start",
        "system",
        "tool_call",
        "tool_result",
        "turn_end",
        "turn_start",
        "user",
        "with_extra",
    ),
    "foldlog.client.operations.checking": ("CheckMode",),
    "foldlog.client.recovery": (
        "Recovery",
        "RecoveryPlan",
        "SuggestedRange",
        "UnresolvedCall",
    ),
    "foldlog.client.retries": ("RetryPolicy",),
    "foldlog.client.state": ("SendLimits",),
    "foldlog.client.stored": (
        "AppliedReplace",
        "CaughtUp",
        "Created",
        "Deleted",
        "Event",
        "EventState",
        "Fact",
        "FeedItem",
        "Forked",
        "HistoryDropped",
        "UnknownFact",
        "Updated",
        "WriterClosed",
        "WriterOpened",
    ),
    "foldlog.client.values": (
        "Appended",
        "ChainFault",
        "CheckResult",
        "CutState",
        "Diff",
        "FoldedMessage",
        "ForkPoint",
        "HistoryCut",
        "ReplaceResult",
        "Restored",
        "Rewound",
        "SessionInfo",
        "Verification",
    ),
    "foldlog.core.event": (
        "EventType",
        "PositionRange",
        "ToolCallPhase",
    ),
    "foldlog.core.header": (
        "Header",
        "HeaderReason",
    ),
    "foldlog.core.invariant": (
        "Sketch",
        "Violation",
        "ViolationKind",
    ),
    "foldlog.core.message": (
        "AttachmentPart",
        "Message",
        "OpaquePart",
        "Part",
        "ReasoningPart",
        "Role",
        "TextPart",
        "ToolCall",
        "ToolCallPart",
        "UnknownPart",
    ),
    "foldlog.core.recovery": (
        "CallRisk",
        "OwedCall",
    ),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "AppendStream",
    "Appendable",
    "Appended",
    "AppliedReplace",
    "AsyncAppendStream",
    "AsyncClient",
    "AsyncSession",
    "AttachmentPart",
    "Body",
    "CallRisk",
    "CaughtUp",
    "ChainFault",
    "CheckMode",
    "CheckResult",
    "Client",
    "Created",
    "Custom",
    "CutState",
    "Deleted",
    "Diff",
    "EntryRange",
    "Event",
    "EventState",
    "EventType",
    "Fact",
    "FeedItem",
    "FoldedMessage",
    "ForkPoint",
    "Forked",
    "Header",
    "HeaderReason",
    "HeaderSnapshot",
    "HistoryCut",
    "HistoryDropped",
    "Message",
    "NewEvent",
    "OpaquePart",
    "OwedCall",
    "Part",
    "Placed",
    "PositionRange",
    "ReasoningPart",
    "Recovery",
    "RecoveryPlan",
    "ReplaceResult",
    "Restored",
    "RetryPolicy",
    "Rewind",
    "Rewound",
    "Role",
    "SendLimits",
    "Session",
    "SessionInfo",
    "Sketch",
    "StepEnd",
    "StepStart",
    "SuggestedRange",
    "TextPart",
    "ToolCall",
    "ToolCallPart",
    "ToolCallPhase",
    "ToolCallState",
    "TurnEnd",
    "TurnStart",
    "UnknownBody",
    "UnknownFact",
    "UnknownPart",
    "UnresolvedCall",
    "Updated",
    "Usage",
    "Verification",
    "Violation",
    "ViolationKind",
    "WriterClosed",
    "WriterOpened",
    "assistant",
    "at",
    "custom",
    "errors",
    "events_of",
    "grouped",
    "placed",
    "replacing",
    "request_header",
    "step_end",
    "step_start",
    "system",
    "tool_call",
    "tool_result",
    "turn_end",
    "turn_start",
    "user",
    "with_extra",
]


def __getattr__(name: str) -> object:
    if name == "errors":
        return import_module("foldlog.client.errors")
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
