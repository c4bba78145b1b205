"""What is fuzzed: each target takes any bytes, refuses them as it says it does, or keeps its word.

A target is pure, or has a store of its own in memory. What it raises is a fault.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from types import ModuleType
from typing import Any, Final

from foldlog import codec
from foldlog.application.incoming import incoming_events
from foldlog.cli.retention_rules import parse as parse_rules
from foldlog.converters import anthropic, openai_chat, openai_responses
from foldlog.converters.converted import Converted
from foldlog.core.anchor import anchor_of
from foldlog.core.canonical import canonical, check_free_json, json_equal
from foldlog.core.errors import FoldlogError, InvalidFieldError
from foldlog.core.validation import validate_header, validate_message
from foldlog.encryption.master_keys import parse as parse_master_keys
from foldlog.importers import Format, Import, UnreadableFileError
from foldlog.internal.v1.raw_pb2 import RawNewEvent
from foldlog.server.handlers import decoder
from foldlog.server.key_set import keys_of
from foldlog.settings import Limits
from foldlog.v1 import message_pb2, service_pb2
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from tests.fuzz import corpus
from tests.fuzz.stored import read_checkpoint, read_row

LIMITS: Final = Limits()
SERVICE: Final = service_pb2.DESCRIPTOR.services_by_name["SessionService"]
REQUESTS: Final = [GetMessageClass(each.input_type) for each in SERVICE.methods]


@dataclass(frozen=True, slots=True)
class Target:
    """What takes bytes, and bytes that get far in it."""

    run: Callable[[bytes], None]
    corpus: Callable[[], Iterable[bytes]]


def requests(data: bytes) -> None:
    """Decode a request of the RPC that the first byte names."""
    kind = REQUESTS[data[0] % len(REQUESTS)] if data else REQUESTS[0]
    decoder(kind, LIMITS.request_fields)(data[1:])
    decoder(kind, 5)(data[1:])


def events(data: bytes) -> None:
    """Judge an event."""
    with suppress(DecodeError, FoldlogError):
        incoming_events([RawNewEvent.FromString(data)], LIMITS)


def messages(data: bytes) -> None:
    """Take a message off the wire, and give it back as it was."""
    try:
        message = codec.message_from_proto(message_pb2.Message.FromString(data))
        validate_message(message)
    except (DecodeError, InvalidFieldError):
        return
    wire = codec.message_to_proto(message).SerializeToString()
    assert codec.message_from_proto(message_pb2.Message.FromString(wire)) == message


def free_json(data: bytes) -> None:
    """Bring JSON into its canonical form, which is that of itself and says the same."""
    text = data.decode(errors="surrogateescape")  # what is no UTF-8 becomes lone surrogates
    found = canonical(text)
    assert canonical(found) == found
    assert json_equal(text, found)
    with suppress(InvalidFieldError):
        check_free_json(text, "field", LIMITS.json_depth)
        assert sorted(json.dumps(_read(found))) == sorted(json.dumps(_read(text)))


def _read(text: str) -> Any:
    """Read JSON with its numbers as they are written: an integer of any length is one."""
    return json.loads(text, parse_int=str, parse_float=str)


def importer(format_: Format) -> Callable[[bytes], None]:
    """Return what reads a file of a format to its end."""

    def read(data: bytes) -> None:
        for salvage in (False, True):
            with suppress(UnreadableFileError):
                Import(BytesIO(data), format_, salvage=salvage).dry_run()

    return read


def converter(provider: ModuleType) -> Callable[[bytes], None]:
    """Return what takes a provider's request into the log, and gives it back as it was."""

    def convert(data: bytes) -> None:
        try:
            request = json.loads(data)
            before = json.dumps(request)
            converted = provider.from_request(request)
            for message in converted.messages:
                validate_message(message)
            validate_header(converted.header)
        except (ValueError, RecursionError, InvalidFieldError):
            return
        assert json.dumps(provider.to_request(_logged(converted))) == before

    return convert


def _logged(converted: Converted) -> Converted:
    made = [codec.message_to_proto(each).SerializeToString() for each in converted.messages]
    read = [codec.message_from_proto(message_pb2.Message.FromString(each)) for each in made]
    header = codec.header_from_proto(codec.header_to_proto(converted.header))
    return Converted(tuple(read), converted.groups, header)


def texts(data: bytes) -> None:
    """Read what an operator writes: anchors, rules, master keys, and the keys of an issuer."""
    text = data.decode(errors="replace")
    for parse in (anchor_of, parse_rules, parse_master_keys):
        with suppress(ValueError, RecursionError):
            parse(text)
    with suppress(ValueError, RecursionError):
        keys_of(json.loads(text))


PROVIDERS: Final = (openai_chat, openai_responses, anthropic)
FORMATS: Final = (*Format,)
TARGETS: Final[Mapping[str, Target]] = {
    "requests": Target(requests, corpus.requests),
    "events": Target(events, corpus.events),
    "messages": Target(messages, corpus.messages),
    "json": Target(free_json, corpus.free_json),
    "rows": Target(read_row, corpus.rows),
    "checkpoints": Target(read_checkpoint, corpus.checkpoints),
    "texts": Target(texts, corpus.texts),
    **{f"import-{each}": Target(importer(each), corpus.files) for each in FORMATS},
    **{
        f"convert-{each.name}": Target(converter(each), corpus.provider_requests)
        for each in PROVIDERS
    },
}
