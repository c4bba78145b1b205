"""The lines of an export: readable fields, and the body as it is stored.

A file is a header line, a line per event in the order of the log, and an end line; if it was asked
for with attachments, each stands before the first event that names it, in pieces of a line each.
`event` is the body in protobuf's JSON form for people; `body` is its bytes in base64 and decides.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import DecodeError

from foldlog.application.incoming import TYPE_OF_KIND
from foldlog.core.errors import InvalidFieldError
from foldlog.core.event import SURFACE_TYPES, TYPE_OF_ROLE, EventType
from foldlog.internal.v1.raw_pb2 import RawEvent
from foldlog.internal.v1.storage_pb2 import Envelope
from foldlog.v1.event_pb2 import EventBody

FORMAT = 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NUMBERED = re.compile(r"type_(\d{1,9})")
TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{9})Z")


def line(fields: Mapping[str, Any]) -> bytes:
    """Return one line of a file."""
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def header_line(
    session_id: str, labels: Mapping[str, str], metadata_json: str, whole_from_seq: int
) -> bytes:
    """Return a file's first line."""
    fields: dict[str, Any] = {
        "foldlog_export": FORMAT,
        "session_id": session_id,
        "labels": dict(sorted(labels.items())),
        "metadata_json": metadata_json,
    }
    if whole_from_seq:
        fields["whole_from_seq"] = whole_from_seq
    return line(fields)


def end_line(count: int, next_seq: int) -> bytes:
    """Return a file's last line."""
    return line({"end": True, "events": count, "next_seq": next_seq})


def event_line(envelope: Envelope) -> bytes:
    """Return the line of an event."""
    fields: dict[str, Any] = {
        "seq": envelope.seq,
        "type": type_name(envelope.type),
        "time": time_text(envelope.time_s, envelope.time_ns),
    }
    if envelope.type in SURFACE_TYPES:
        replaces = envelope.HasField("replace")
        fields["position"] = envelope.replace.start if replaces else envelope.seq
    if envelope.HasField("replace"):
        fields["replace"] = {
            "start": envelope.replace.start,
            "stop": envelope.replace.stop,
            "shadowed_seqs": list(envelope.replace.shadowed_seqs),
        }
    if envelope.request_id:
        fields["request"] = {
            "id": envelope.request_id,
            "digest": envelope.request_digest.hex(),
            "rows": envelope.row_count,
        }
    elif envelope.noted_request_id:
        fields["request_id"] = envelope.noted_request_id
    if envelope.HasField("request_mark"):
        fields["request_next_seq"] = envelope.request_mark.next_seq
    if envelope.dropped:
        fields["dropped"] = True
    else:
        fields["event"] = readable(envelope.body)
        fields["body"] = b64encode(envelope.body).decode()
    return line(fields)


def attachment_line(sha256: bytes, size_bytes: int, offset: int, data: bytes) -> bytes:
    """Return the line of a piece of an attachment. Its pieces follow one another."""
    encoded = b64encode(data).decode()
    return line(
        {
            "attachment": {
                "sha256": sha256.hex(),
                "size_bytes": size_bytes,
                "offset": offset,
                "data": encoded,
            }
        }
    )


def readable(body: bytes) -> dict[str, Any]:
    """Return a body's known fields in protobuf's JSON form."""
    found: dict[str, Any] = MessageToDict(
        EventBody.FromString(body), preserving_proto_field_name=True
    )
    return found


def type_name(number: int) -> str:
    """Return an event type's name in a file; one of a newer release goes by its number."""
    try:
        return EventType(number).name.lower()
    except ValueError:
        return f"type_{number}"


def time_text(seconds: int, nanos: int) -> str:
    """Return a time as RFC 3339 with nine digits of the second."""
    moment = (EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None)
    return f"{moment.isoformat(timespec='seconds')}.{nanos:09d}Z"


def time_from(text: object) -> tuple[int, int]:
    """Return (seconds, nanoseconds). Raises ValueError."""
    found = TIME.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError("it is not a time such as 2026-01-02T03:04:05.000000000Z")
    moment = datetime.fromisoformat(found[1]).replace(tzinfo=UTC)
    return int((moment - EPOCH) / timedelta(seconds=1)), int(found[2])


def parse_line(encoded: bytes, number: int) -> dict[str, Any]:
    """Return a line's fields. Raises InvalidFieldError naming the line."""
    try:
        fields = json.loads(encoded)
    except (ValueError, RecursionError) as error:
        raise InvalidFieldError.of(f"line {number}", f"it is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise InvalidFieldError.of(f"line {number}", "it is not a JSON object")
    return fields


def judge_header(fields: Mapping[str, Any]) -> None:
    """Raise InvalidFieldError unless a file's first line has what it must, in form."""
    for name in ("session_id", "metadata_json"):
        _text(fields, name, "line 1")
    labels = fields.get("labels", {})
    if not isinstance(labels, Mapping):
        raise InvalidFieldError.of("line 1.labels", "an object is required")
    for name in labels:
        _text({"key": name}, "key", "line 1.labels")
        _text(labels, name, "line 1.labels")
    if "whole_from_seq" in fields:
        _integer(fields, "whole_from_seq", "line 1")


def event_from(fields: Mapping[str, Any], number: int) -> RawEvent:
    """Return the event of a line. Raises InvalidFieldError naming the line and the field."""
    path = f"line {number}"
    event = RawEvent(seq=_integer(fields, "seq", path))
    if "time" in fields:  # an export has it; what importers make may leave it to our clock
        try:
            event.time.seconds, event.time.nanos = time_from(fields["time"])
        except ValueError as error:
            raise InvalidFieldError.of(f"{path}.time", str(error)) from None
    if _flag(fields, "dropped", path):
        event.dropped = True
        event.type = _type(fields, path)  # type: ignore[assignment]
    else:
        event.body = _body(fields, path)
        event.type = _type_beside(fields, event.body, path)  # type: ignore[assignment]
    replace = fields.get("replace")
    if replace is not None and not isinstance(replace, Mapping):
        raise InvalidFieldError.of(f"{path}.replace", "an object is required")
    if replace is not None:
        event.replace.start = _integer(replace, "start", f"{path}.replace")
        event.replace.stop = _integer(replace, "stop", f"{path}.replace")
    position = event.replace.start if event.HasField("replace") else event.seq
    if fields.get("position", position) != position:
        raise InvalidFieldError.of(f"{path}.position", f"the event stands at {position}")
    event.request_id = _text(fields, "request_id", path)
    if "request" in fields:
        _take_request(event, fields["request"], f"{path}.request")
    if "request_next_seq" in fields:
        event.request_next_seq = _integer(fields, "request_next_seq", path)
    return event


def _take_request(event: RawEvent, request: object, path: str) -> None:
    if not isinstance(request, Mapping):
        raise InvalidFieldError.of(path, "an object is required")
    event.request_id = _text(request, "id", path)
    event.request_row_count = _integer(request, "rows", path)
    try:
        event.request_digest = bytes.fromhex(_text(request, "digest", path))
    except ValueError:
        raise InvalidFieldError.of(f"{path}.digest", "hexadecimal digits are required") from None


def _flag(fields: Mapping[str, Any], name: str, path: str) -> bool:
    value = fields.get(name, False)
    if not isinstance(value, bool):
        raise InvalidFieldError.of(f"{path}.{name}", "true or false is required")
    return value


def _integer(fields: Mapping[str, Any], name: str, path: str) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise InvalidFieldError.of(f"{path}.{name}", "an integer of at least 0 is required")
    return value


def _text(fields: Mapping[str, Any], name: str, path: str) -> str:
    value = fields.get(name, "")
    if not isinstance(value, str):
        raise InvalidFieldError.of(f"{path}.{name}", "a string is required")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidFieldError.of(f"{path}.{name}", "it holds a lone surrogate") from None
    return value


def _type(fields: Mapping[str, Any], path: str) -> EventType:
    name = _text(fields, "type", path)
    try:
        return EventType[name.upper()]
    except KeyError:
        raise InvalidFieldError.of(f"{path}.type", f"{name!r} is no event type") from None


def _type_beside(fields: Mapping[str, Any], body: bytes, path: str) -> int:
    """Return the number of a type that only a newer release knows, as the line names it; else 0.

    Raises InvalidFieldError if a line names another type than its body has. A release that did not
    know the type wrote its number.
    """
    found = EventBody.FromString(body)
    kind = found.WhichOneof("kind")
    if "type" not in fields:
        return 0  # judged with the body
    if kind is None:
        numbered = NUMBERED.fullmatch(_text(fields, "type", path))
        return int(numbered[1]) if numbered else 0
    type_ = TYPE_OF_KIND.get(kind) or TYPE_OF_ROLE.get(found.message.role)
    if type_ is not None and fields["type"] not in (type_name(type_), f"type_{type_}"):
        raise InvalidFieldError.of(f"{path}.type", f"its body is that of a {type_name(type_)}")
    return 0


def _body(fields: Mapping[str, Any], path: str) -> bytes:
    given, encoded = fields.get("event"), fields.get("body")
    if encoded is None:
        return _parsed(given, path).SerializeToString(deterministic=True)
    try:
        body = b64decode(encoded, validate=True)
        shown = readable(body)
    except (Base64Error, TypeError, ValueError, DecodeError):
        raise InvalidFieldError.of(f"{path}.body", "it is not an EventBody in base64") from None
    if given is not None and given != shown:
        raise InvalidFieldError.of(f"{path}.event", "it differs from the body, which decides")
    return body


def _parsed(given: object, path: str) -> EventBody:
    if not isinstance(given, dict):
        raise InvalidFieldError.of(f"{path}.event", "an object is required where there is no body")
    try:
        return ParseDict(given, EventBody())
    except (ParseError, ValueError, RecursionError) as error:
        raise InvalidFieldError.of(f"{path}.event", str(error)) from None
