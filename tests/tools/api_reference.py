"""Writes the API reference from the protos' comments: `python -m tests.tools.api_reference`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)

from tests.tools.descriptors import files, proto_names

# Field numbers in the descriptors themselves: a comment is found by the path of numbers to it.
MESSAGE, ENUM, SERVICE = 4, 5, 6
FIELD, ONEOF, VALUE, METHOD = 2, 8, 2, 2
INTRODUCTION = """\
# API

Written by `make gen` from the protos under `protos/foldlog/v1`; do not edit. What the words mean
stands in [the model](../explanation/model.md), how errors travel in [errors](errors.md).
"""

Path = tuple[int, ...]


class Page:
    """The part of the reference that one proto file becomes."""

    def __init__(self, file: FileDescriptorProto) -> None:
        self._file = file
        self._comments = {
            tuple(each.path): each.leading_comments for each in file.source_code_info.location
        }

    def lines(self) -> Iterator[str]:
        """Yield the page's lines: services, then messages, then enums."""
        for i, service in enumerate(self._file.service):
            yield from self._service(service, (SERVICE, i))
        for i, message in enumerate(self._file.message_type):
            yield from self._message(message, (MESSAGE, i))
        for i, enum in enumerate(self._file.enum_type):
            yield from self._enum(enum, (ENUM, i))

    def _service(self, service: ServiceDescriptorProto, path: Path) -> Iterator[str]:
        yield from (f"## {service.name}", "", self._text(path), "")
        yield from ("| call | request | answer | |", "| --- | --- | --- | --- |")
        for i, method in enumerate(service.method):
            request = _streamed(method.input_type, method.client_streaming)
            answer = _streamed(method.output_type, method.server_streaming)
            yield f"| `{method.name}` | {request} | {answer} | {self._line((*path, METHOD, i))} |"
        yield ""

    def _message(self, message: DescriptorProto, path: Path) -> Iterator[str]:
        yield from (f"### {message.name}", "", self._text(path), "")
        if message.field:
            yield from ("| field | type | |", "| --- | --- | --- |")
        for i, field in enumerate(message.field):
            kind = _kind(message, field)
            yield f"| `{field.name}` = {field.number} | {kind} | {self._line((*path, FIELD, i))} |"
        yield ""

    def _enum(self, enum: EnumDescriptorProto, path: Path) -> Iterator[str]:
        yield from (f"### {enum.name}", "", self._text(path), "")
        yield from ("| value | |", "| --- | --- |")
        for i, value in enumerate(enum.value):
            yield f"| `{value.name}` = {value.number} | {self._line((*path, VALUE, i))} |"
        yield ""

    def _text(self, path: Path) -> str:
        lines = self._comments.get(path, "").splitlines()
        return "\n".join(line.removeprefix(" ") for line in lines).strip()

    def _line(self, path: Path) -> str:
        return " ".join(self._text(path).split()).replace("|", "\\|")


def _kind(message: DescriptorProto, field: FieldDescriptorProto) -> str:
    if entry := next((n for n in message.nested_type if field.type_name.endswith(n.name)), None):
        return f"map of {_type(entry.field[0])} to {_type(entry.field[1])}"
    if field.label == FieldDescriptorProto.LABEL_REPEATED:
        return f"list of {_type(field)}"
    if field.proto3_optional:
        return f"optional {_type(field)}"
    if field.HasField("oneof_index"):
        return f"{_type(field)}, one of `{message.oneof_decl[field.oneof_index].name}`"
    return _type(field)


def _type(field: FieldDescriptorProto) -> str:
    if field.type_name:
        return _link(field.type_name)
    return FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()


def _streamed(name: str, is_stream: bool) -> str:
    return f"stream of {_link(name)}" if is_stream else _link(name)


def _link(name: str) -> str:
    package, _, short = name.rpartition(".")
    return f"[{short}](#{short.lower()})" if package == ".foldlog.v1" else f"`{name.lstrip('.')}`"


def api_reference() -> str:
    """Return the whole reference as Markdown, the service first."""
    names = [name for name in proto_names() if name.startswith("foldlog/v1/")]
    pages = sorted(files(names), key=lambda file: not file.service)
    return "\n".join([INTRODUCTION, *(line for file in pages for line in Page(file).lines())])


if __name__ == "__main__":
    sys.stdout.write(api_reference())
