"""Calls and their answers, kept as JSON so that a later release can be asked the same again."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import grpc
from foldlog.v1 import service_pb2
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from tests.contract.refusal import refusal_of

SERVICE = service_pb2.DESCRIPTOR.services_by_name["SessionService"]
DEADLINE_S = 60.0

Fields = dict[str, Any]


@dataclass(frozen=True)
class Exchange:
    """One call: its method, what was sent, and what was answered."""

    method: str
    requests: Sequence[Fields]
    answers: Sequence[Fields]

    def again(self, channel: grpc.Channel) -> list[Fields]:
        """Send the same and return what is answered now."""
        kind = GetMessageClass(SERVICE.methods_by_name[self.method].input_type)
        return asked(channel, self.method, *(ParseDict(each, kind()) for each in self.requests))


@dataclass
class Recording:
    """Stands for the generated stub, and keeps what passes."""

    channel: grpc.Channel
    exchanges: list[Exchange] = field(default_factory=list)

    def __getattr__(self, method: str) -> Callable[..., Any]:
        about = SERVICE.methods_by_name[method]

        def call(given: Any, timeout: float = DEADLINE_S) -> Any:
            requests: list[Message] = list(given) if about.client_streaming else [given]
            answers = list(_answers(self.channel, method, requests))
            kept = [_kept(each) for each in requests]
            self.exchanges.append(Exchange(method, kept, [shown(each) for each in answers]))
            return iter(answers) if about.server_streaming else answers[0]

        return call

    def ask(self, method: str, request: Message) -> None:
        """Make a call that may be refused, and keep what comes of it."""
        answers = asked(self.channel, method, request)
        self.exchanges.append(Exchange(method, [_kept(request)], answers))


def shown(message: Message) -> Fields:
    """Return a message with every field that is never absent, empty ones too."""
    fields: Fields = MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return fields


def _kept(request: Message) -> Fields:
    fields: Fields = MessageToDict(request, preserving_proto_field_name=True)
    assert ParseDict(fields, type(request)()) == request
    return fields


def asked(channel: grpc.Channel, method: str, *requests: Message) -> list[Fields]:
    """Make a call of any shape and return its answers, or its refusal."""
    try:
        return [shown(each) for each in _answers(channel, method, requests)]
    except grpc.RpcError as error:
        refusal = refusal_of(error)
        return [{"refused": refusal.code.name, "reason": refusal.reason}]


def _answers(channel: grpc.Channel, method: str, requests: Sequence[Message]) -> Iterator[Message]:
    """Yield a call's answers; those of a watch until it has caught up."""
    about = SERVICE.methods_by_name[method]
    call = _callable(channel, method)
    given = call(iter(requests) if about.client_streaming else requests[0], timeout=DEADLINE_S)
    for answer in given if about.server_streaming else [given]:
        yield answer
        if method.startswith("Watch") and answer.HasField("caught_up"):
            given.cancel()
            return


def _callable(channel: grpc.Channel, method: str) -> Callable[..., Any]:
    about = SERVICE.methods_by_name[method]
    sides = [
        "stream" if streams else "unary"
        for streams in (about.client_streaming, about.server_streaming)
    ]
    make: Callable[..., Callable[..., Any]] = getattr(channel, "_".join(sides))
    return make(
        f"/{SERVICE.full_name}/{method}",
        request_serializer=lambda each: each.SerializeToString(deterministic=True),
        response_deserializer=GetMessageClass(about.output_type).FromString,
    )


def whole(answers: Sequence[Fields]) -> list[Fields]:
    """Return answers with bytes that came in pieces as one: where they are cut is no promise."""
    if not all(isinstance(each.get("data"), str) for each in answers):
        return [*answers]
    data = b"".join(b64decode(each["data"]) for each in answers)
    return [{**each, "data": b64encode(data).decode()} for each in answers[:1]]


def write(path: Path, exchanges: Iterable[Exchange]) -> None:
    """Write calls, one a line."""
    with path.open("w", encoding="utf-8") as file:
        for each in exchanges:
            file.write(json.dumps(asdict(each), ensure_ascii=False) + "\n")


def read(path: Path) -> Iterator[Exchange]:
    """Yield the calls of a file."""
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            yield Exchange(**json.loads(line))


def departures(expected: Any, found: Any, where: str = "") -> Iterator[str]:
    """Yield where an answer departs from the one expected. What later releases add does not."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for name, value in expected.items():
            yield from departures(value, found.get(name), f"{where}.{name}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for index, (one, other) in enumerate(zip(expected, found, strict=True)):
            yield from departures(one, other, f"{where}[{index}]")
    elif expected != found:
        yield f"{where}: {expected!r} became {found!r}"
