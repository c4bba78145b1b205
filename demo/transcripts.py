"""Recorded agents: transcripts from JSON files, as the events a worker appends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import foldlog
from foldlog import HeaderReason, Message, NewEvent, ToolCall, ToolCallPhase, Usage

FOLDER = Path(__file__).parent / "transcripts"
# What a worker has in hand at once: a model's answer, one tool's result, the end of a step.
BATCH_BEGINS = frozenset({"turn_start", "assistant", "step_end", "custom"})


@dataclass(frozen=True, slots=True)
class Batch:
    """Events appended together. `first_seq` is the seq of the first one in a new session."""

    first_seq: int
    events: tuple[NewEvent, ...]

    def request_id(self, session_id: str) -> str:
        """Return an id that a worker finds again after a crash: it is made of what the batch is."""
        return f"{session_id}/{self.first_seq}"


@dataclass(frozen=True, slots=True)
class Transcript:
    """What one agent did. `at_seq` is where a fork left its parent."""

    title: str
    about: str
    session_id: str
    labels: dict[str, str]
    metadata_json: str
    batches: tuple[Batch, ...]
    size_bytes: int
    at_seq: int | None = None
    fork: Transcript | None = None

    @property
    def events(self) -> tuple[NewEvent, ...]:
        """Every event, in order."""
        return tuple(event for batch in self.batches for event in batch.events)

    @property
    def compaction(self) -> int | None:
        """The index of the batch with the first replace; None if there is none."""
        replaces = (i for i, b in enumerate(self.batches) if any(e.replace for e in b.events))
        return next(replaces, None)

    def count(self, kind: type) -> int:
        """Return how many of the events have a body of this kind."""
        return sum(isinstance(event.body, kind) for event in self.events)

    @property
    def tool_calls(self) -> int:
        """How many tool calls the model asked for."""
        return sum(len(e.body.tool_calls) for e in self.events if isinstance(e.body, Message))


def load(name: str) -> Transcript:
    """Return the shipped transcript of this name."""
    return _transcript(json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")), 0)


def _transcript(stored: dict[str, Any], first_seq: int) -> Transcript:
    at_seq = stored.get("at_seq")
    fork = stored.get("fork")
    return Transcript(
        title=stored.get("title", ""),
        about=stored.get("about", ""),
        session_id=stored["session_id"],
        labels=stored["labels"],
        metadata_json=_json(stored["metadata"]),
        batches=tuple(_batches(stored["events"], first_seq)),
        size_bytes=len(_json(stored["events"]).encode()),
        at_seq=at_seq,
        fork=_transcript(fork, fork["at_seq"] + 1) if fork else None,
    )


def _batches(stored: list[dict[str, Any]], first_seq: int) -> Iterator[Batch]:
    begins = [i for i, each in enumerate(stored) if i == 0 or _begins_batch(each)]
    for start, stop in zip(begins, [*begins[1:], len(stored)], strict=True):
        yield Batch(first_seq + start, tuple(map(_event, stored[start:stop])))


def _begins_batch(stored: dict[str, Any]) -> bool:
    is_outcome = stored["kind"] == "tool_call" and stored["phase"] != "dispatched"
    return stored["kind"] in BATCH_BEGINS or is_outcome or "replace" in stored


def _event(stored: dict[str, Any]) -> NewEvent:
    event = foldlog.at(_body(stored), datetime.fromisoformat(stored["time"]))
    return foldlog.replacing(event, **stored["replace"]) if "replace" in stored else event


def _body(stored: dict[str, Any]) -> Any:
    match stored["kind"]:
        case "user":
            return foldlog.user(stored["text"])
        case "assistant":
            calls = [ToolCall(**call) for call in stored.get("tool_calls", ())]
            reasoning = stored.get("reasoning")
            return foldlog.assistant(stored.get("text"), tool_calls=calls, reasoning=reasoning)
        case "tool_result":
            call_id, name = stored["tool_call_id"], stored["name"]
            return foldlog.tool_result(stored["text"], tool_call_id=call_id, name=name)
        case _:
            return _bookkeeping(stored)


def _bookkeeping(stored: dict[str, Any]) -> Any:
    number, reason = stored.get("number"), stored.get("reason")
    usage = Usage(**stored.get("usage", {}))
    match stored["kind"]:
        case "turn_start":
            return foldlog.turn_start(number, reason=reason)
        case "turn_end":
            return foldlog.turn_end(number, reason=reason, usage=usage)
        case "step_start":
            return foldlog.step_start(number)
        case "step_end":
            return foldlog.step_end(number, reason=reason, usage=usage)
        case "tool_call":
            phase = ToolCallPhase[stored["phase"].upper()]
            key = stored.get("idempotency_key")
            return foldlog.tool_call(
                stored["id"], name=stored["name"], phase=phase, idempotency_key=key
            )
        case "request_header":
            return foldlog.request_header(_header(stored), reason=HeaderReason.INITIAL)
        case "custom":
            payload = _json(stored["payload"]).encode()
            return foldlog.custom(stored["custom_kind"], payload, keys=stored.get("keys", ()))
        case kind:
            raise ValueError(f"a transcript has an event of unknown kind {kind!r}")


def _header(stored: dict[str, Any]) -> foldlog.Header:
    return foldlog.Header(
        provider=stored["provider"],
        model=stored["model"],
        parameters_json=_json(stored["parameters"]),
        system_prompt=stored["system_prompt"],
        tools_json=tuple(map(_json, stored["tools"])),
        reasoning_effort=stored.get("reasoning_effort", ""),
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
