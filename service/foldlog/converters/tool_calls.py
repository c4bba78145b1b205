"""Tool calls of the two OpenAI APIs: a kind of call with its texts lifted, or any other as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from foldlog.converters.json_text import JsonObject, dumps, loads_object
from foldlog.core.message import ToolCall

# The kind of a call that none of a provider's shapes fits: its arguments are the whole call.
OTHER = "other"


@dataclass(frozen=True, slots=True)
class CallShape:
    """Which member of a call holds its arguments, and which one, if any, holds that."""

    arguments: str
    body: str | None = None


@dataclass(frozen=True, slots=True)
class CallShapes:
    """A provider's kinds of calls by type, the default first, and the member that is the id."""

    id: str
    shapes: Mapping[str, CallShape]

    @property
    def default(self) -> str:
        """The kind of a call logged natively."""
        return next(iter(self.shapes))

    def call_of(self, original: JsonObject) -> tuple[ToolCall, str]:
        """Return the call and its kind."""
        kind = original.get("type", self.default)
        shape = self.shapes.get(kind) if isinstance(kind, str) else None
        body = original if shape is None or shape.body is None else original.get(shape.body)
        if shape is None or not isinstance(body, dict):
            return self._other(original)
        found = [original.get(self.id, ...), body.get("name", ...), body.get(shape.arguments, ...)]
        if not all(value is ... or isinstance(value, str) for value in found):
            return self._other(original)
        call_id, name, arguments = [value if isinstance(value, str) else None for value in found]
        return ToolCall(call_id, name, arguments), str(kind)

    def _other(self, original: JsonObject) -> tuple[ToolCall, str]:
        rest, call_id = dict(original), None
        if isinstance(original.get(self.id), str):
            call_id = str(rest.pop(self.id))
        kind = original.get("type")
        name = kind if isinstance(kind, str) else None
        return ToolCall(call_id, name, dumps(rest)), OTHER

    def natural(self, call: ToolCall, kind: str, path: str) -> JsonObject:
        """Return the natural form of a call. Arguments that are absent are an empty object."""
        known = {} if call.id is None else {self.id: call.id}
        if kind not in self.shapes:
            return {**known, **loads_object(call.arguments or "", f"{path}.arguments")}
        shape = self.shapes[kind]
        body: JsonObject = {} if call.name is None else {"name": call.name}
        body[shape.arguments] = "{}" if call.arguments is None else call.arguments
        if shape.body is None:
            return {"type": kind, **known, **body}
        return {**known, "type": kind, shape.body: body}
