"""From the cases' notation to the wire: value forms, messages, events."""

from __future__ import annotations

import json
from typing import Any

from foldlog.v1 import check_pb2, event_pb2, message_pb2
from google.protobuf import timestamp_pb2

ROLE_OF_TYPE = {
    "system_message": "system",
    "user_message": "user",
    "assistant_message": "assistant",
    "tool_result": "tool",
}
MESSAGE_KEYS = {
    *("content", "tool_calls", "tool_call_id", "name"),
    *("reasoning_content", "metadata", "surface_op", "role", "created_at"),
}
HEADER_REASONS = {
    "initial": event_pb2.HEADER_REASON_INITIAL,
    "resume": event_pb2.HEADER_REASON_RESUME,
    "change": event_pb2.HEADER_REASON_CHANGE,
}
# The last second of the year 9999, and one more: no time that the wire calls valid.
NO_TIME = timestamp_pb2.Timestamp(seconds=253_402_300_800)


class UnrepresentableError(Exception):
    """The case holds something that the wire has no form for."""


def value(form: Any) -> Any:
    """Evaluate a value form. `$json` and `$opaque` stay as they are, for `json_text`."""
    match form:
        case {"$repeat": [text, count]}:
            return value(text) * count
        case {"$concat": parts}:
            return "".join(value(part) for part in parts)
        case {"$utf16": units}:
            encoded = b"".join(int(unit, 16).to_bytes(2, "big") for unit in units)
            return encoded.decode("utf-16-be", "surrogatepass")
        case {"$string_keys": inner} | {"$atom_keys": inner}:
            return value(inner)
    return form


def json_text(form: Any) -> str:
    """Return JSON text with `$json` forms digit for digit. Odd forms give what is no JSON."""
    match form:
        case {"$json": text}:
            return str(text)
        case {"$int_keys": inner}:
            return "{" + ",".join(f"{key}:{json_text(item)}" for key, item in inner.items()) + "}"
        case {"$tuple": items}:
            return "(" + ",".join(json_text(item) for item in items) + ")"
        case {"$atom": name}:
            return str(name)
        case {"$opaque": kind}:
            raise UnrepresentableError(kind)
        case dict():
            pairs = (f"{json.dumps(key)}:{json_text(item)}" for key, item in form.items())
            return "{" + ",".join(pairs) + "}"
        case list():
            return "[" + ",".join(map(json_text, form)) + "]"
    return json.dumps(form, ensure_ascii=False)


def part(form: Any) -> message_pb2.Part:
    """Return a content part: a text part for a text, an opaque one for anything else."""
    if isinstance(form, dict) and form.keys() == {"type", "text"} and form["type"] == "text":
        return message_pb2.Part(text=value(form["text"]))
    if isinstance(form, dict) and form.keys() == {"type", "sha256", "media_type"}:
        digest, media_type = bytes.fromhex(form["sha256"]), form["media_type"]
        ref = message_pb2.AttachmentRef(sha256=digest, media_type=media_type)
        return message_pb2.Part(attachment=ref)
    kind = str(form.get("type", "json")) if isinstance(form, dict) else "json"
    return message_pb2.Part(opaque=message_pb2.OpaquePart(kind=kind, json=json_text(form)))


def set_content(message: message_pb2.Message, form: Any) -> None:
    """Set the content: a text, parts, a single opaque part for other values, or none."""
    evaluated = value(form)
    if isinstance(evaluated, str):
        message.text = evaluated
    elif isinstance(evaluated, list):
        message.parts.SetInParent()
        message.parts.parts.extend(map(part, evaluated))
    elif evaluated is not None:
        message.parts.parts.append(part(evaluated))


def tool_call(form: dict[str, Any]) -> message_pb2.ToolCall:
    """Return a tool call; an id is text, whatever it was."""
    fields = {
        k: str(value(form[k])) for k in ("id", "name", "arguments") if form.get(k) is not None
    }
    return message_pb2.ToolCall(**fields)


def message(role: str, data: dict[str, Any]) -> message_pb2.Message:
    """Return the message that a role and an event's data, or a request's entry, stand for."""
    made = message_pb2.Message(
        role=message_pb2.Role.Value(f"ROLE_{role.upper()}"),
        tool_calls=[tool_call(each) for each in data.get("tool_calls") or []],
    )
    set_content(made, data.get("content"))
    _set_options(made, data)
    return made


def _set_options(made: message_pb2.Message, data: dict[str, Any]) -> None:
    if data.get("tool_call_id") is not None:
        made.tool_call_id = value(data["tool_call_id"])
    if data.get("name") is not None:
        made.name = value(data["name"])
    if data.get("reasoning_content") is not None:
        made.reasoning = data["reasoning_content"]
    if data.get("metadata"):
        made.metadata_json = json_text(data["metadata"])
    if "created_at" in data:
        made.create_time.FromJsonString(data["created_at"])


def request_message(form: dict[str, Any]) -> message_pb2.Message:
    """Return a request's message; one of an unknown role, or no message at all, has no role."""
    known = {"system", "user", "assistant", "tool"}
    if form.get("role") not in known:
        return message_pb2.Message()
    return message(form["role"], form)


def body(type_: str, data: Any) -> event_pb2.EventBody:
    """Return an event's body. An unknown type, or data that is no map, gives one without a kind."""
    data = value(data)
    if not isinstance(data, dict) or "$list" in data:
        return event_pb2.EventBody()
    made, known = _kind(type_, data)
    extra = {key: item for key, item in data.items() if key not in known}
    if extra:
        made.extra_json = json_text(extra)
    return made


def _kind(type_: str, data: dict[str, Any]) -> tuple[event_pb2.EventBody, set[str]]:
    if type_ in ROLE_OF_TYPE:
        return event_pb2.EventBody(message=message(ROLE_OF_TYPE[type_], data)), MESSAGE_KEYS
    if type_ in {"turn_start", "turn_end", "step_start", "step_end"}:
        made = event_pb2.EventBody()
        getattr(made, type_).SetInParent()
        if "turn" in data:
            getattr(made, type_).number = data["turn"]
        return made, {"turn", "surface_op"}
    if type_ == "tool_call":
        call = event_pb2.ToolCallState(id=data.get("id"), name=data.get("name"))
        return event_pb2.EventBody(tool_call=call), {"id", "name"}
    if type_ == "request_header":
        return event_pb2.EventBody(request_header=header(data)), set(data)
    return event_pb2.EventBody(), set()


def header(data: dict[str, Any]) -> event_pb2.RequestHeader:
    """Return a request header."""
    return event_pb2.RequestHeader(
        model=data.get("model", ""),
        system_prompt=data.get("system", ""),
        tools_json=[json_text(tool) for tool in data.get("tools", ())],
        reason=HEADER_REASONS.get(data.get("reason", ""), event_pb2.HEADER_REASON_UNSPECIFIED),
    )


def replace(op: Any, type_: str) -> event_pb2.Replace | None:
    """Return the replace that a surface_op stands for.

    The wire has no append marker: on a surface type it is left out. On a bookkeeping type, and for
    markers the wire does not know, the nearest thing is a replace without a range.
    """
    match op:
        case None:
            return None
        case "append" if type_ in ROLE_OF_TYPE:
            return None
        case ["replace", int(start), int(stop)] | {"replace": [int(start), int(stop)]}:
            return event_pb2.Replace(positions=event_pb2.PositionRange(start=start, stop=stop))
        case {"$tuple": _}:
            raise UnrepresentableError("a range without two integers")
    return event_pb2.Replace()


def time(form: Any) -> timestamp_pb2.Timestamp | None:
    """Return a time; what is none becomes one out of range."""
    if form is None:
        return None
    if not isinstance(form, str):
        return NO_TIME
    made = timestamp_pb2.Timestamp()
    made.FromJsonString(form)
    return made


def new_event(op: dict[str, Any]) -> event_pb2.NewEvent:
    """Return the event that an append op stands for."""
    data = op["data"]
    marker = op.get("surface_op")
    if marker is None and isinstance(data, dict):
        marker = data.get("surface_op")
    made = event_pb2.NewEvent(body=body(op["type"], data), time=time(op.get("time")))
    if (stated := replace(marker, op["type"])) is not None:
        made.replace.CopyFrom(stated)
    return made


def folded(entry: Any) -> dict[str, Any]:
    """Return a folded message in the cases' notation: fields at their default are left out."""
    said = entry.message
    made: dict[str, Any] = {
        "role": message_pb2.Role.Name(said.role).removeprefix("ROLE_").lower(),
        "content": _content(said),
        "seq": entry.seq,
    }
    if said.tool_calls:
        made["tool_calls"] = [_call(call) for call in said.tool_calls]
    for field, key in (("tool_call_id",) * 2, ("name",) * 2, ("reasoning", "reasoning_content")):
        if said.HasField(field):
            made[key] = getattr(said, field)
    if said.HasField("metadata_json"):
        made["metadata"] = json.loads(said.metadata_json)
    return made


def closing(event: Any) -> dict[str, Any]:
    """Return an event that closes something in the cases' notation: its type and its data."""
    body = event.body
    kind = body.WhichOneof("kind")
    if kind == "message":
        said = body.message
        data = {"metadata": json.loads(said.metadata_json), "tool_call_id": said.tool_call_id}
        return {"type": "tool_result", "data": data | {"name": said.name}}
    end = getattr(body, kind)
    marker = json.loads(body.extra_json)
    assert marker.pop("synthetic")
    numbered = {"turn": end.number} if end.HasField("number") else {}
    return {"type": kind, "data": {"reason": end.reason} | marker | numbered}


def _content(said: message_pb2.Message) -> Any:
    match said.WhichOneof("content"):
        case "text":
            return said.text
        case "parts":
            return [_part(each) for each in said.parts.parts]
    return None


def _part(each: message_pb2.Part) -> Any:
    if each.WhichOneof("kind") == "text":
        return {"type": "text", "text": each.text}
    return json.loads(each.opaque.json)


def _call(call: message_pb2.ToolCall) -> dict[str, str]:
    return {field.name: str(item) for field, item in call.ListFields()}


def violation(told: Any) -> dict[str, Any]:
    """Return a violation in the cases' notation."""
    kind = check_pb2.ViolationKind.Name(told.kind).removeprefix("VIOLATION_KIND_").lower()
    return {
        "kind": kind,
        "index": told.index,
        "request_length": told.request_length,
        "log_length": told.log_length,
        "extra": [sketch(each) for each in told.extra],
        "missing": [sketch(each) for each in told.missing],
        "tool_call_id": told.tool_call_id if told.HasField("tool_call_id") else None,
    }


def sketch(told: Any) -> dict[str, Any]:
    """Return a sketch in the cases' notation: a system message's is its role alone."""
    names = {0: "unspecified", 1: "system", 2: "user", 3: "assistant", 4: "tool"}
    made: dict[str, Any] = {"role": names.get(told.role, told.role)}
    for field in ("preview", "tool_call_id", "name"):
        made[field] = getattr(told, field) if told.HasField(field) else None
    made["tool_calls"] = told.tool_calls
    bare = {"preview": None, "tool_call_id": None, "name": None, "tool_calls": 0}
    return {"role": "system"} if made == {"role": "system"} | bare else made
