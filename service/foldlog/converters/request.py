"""The request around the messages, and the header it becomes."""

from __future__ import annotations

from dataclasses import dataclass

from foldlog.converters.blocks import is_plain_text
from foldlog.converters.json_text import JsonObject, dumps, loads, loads_object, require_object
from foldlog.converters.residue import member_of, members, restored, with_difference
from foldlog.core.header import CONVERTER_PREFIX, Header

# Between the texts of a system prompt given as blocks.
SEPARATOR = "\n\n"


@dataclass(frozen=True, slots=True)
class RequestShape:
    """Where a provider's request keeps what a header has fields for.

    `effort` is the path of the reasoning effort: a member, or a member of a member.
    """

    provider: str
    messages: str
    effort: tuple[str, ...]
    system: str | None = None

    def header_of(self, request: JsonObject) -> Header:
        """Return the header that holds everything of the request but its messages."""
        parameters = _without_notes(request)
        parameters.pop(self.messages, None)
        model = _taken_text(parameters, "model")
        system, hints = self._taken_system(parameters)
        tools = _taken_tools(parameters)
        effort = self._taken_effort(parameters)
        header = Header(self.provider, model, "", system, tools, effort)
        natural = self._natural(header, parameters, hints)
        hints = with_difference(hints, natural, self._framed(request))
        if hints:
            parameters[member_of(self.provider)] = hints
        text = dumps(parameters) if parameters else ""
        return Header(self.provider, model, text, system, tools, effort)

    def request_of(self, header: Header, messages: object, more_system: list[str]) -> JsonObject:
        """Return the request of a header around messages.

        Texts of `more_system` follow the header's system prompt. `messages` takes the
        place of those of the original, unless it is an empty list and the original had no list.
        """
        parameters = _parameters(header)
        hints = members(parameters, member_of(self.provider))
        natural = self._natural(header, _without_notes(parameters), hints)
        request = require_object(restored(natural, hints), "header.parameters_json")
        if messages != [] or request.get(self.messages) == []:
            request[self.messages] = messages
        if self.system is not None and more_system:
            request[self.system] = _extended(request.get(self.system), more_system)
        return request

    def _framed(self, request: JsonObject) -> JsonObject:
        held = request.get(self.messages)
        return {**request, self.messages: []} if isinstance(held, str | list) else request

    def _natural(self, header: Header, parameters: JsonObject, hints: JsonObject) -> JsonObject:
        request: JsonObject = {"model": header.model} if header.model else {}
        if self.system is not None and header.system_prompt:
            request[self.system] = _prompt(header.system_prompt, hints.get("system"))
        request[self.messages] = []
        if header.tools_json:
            tools = enumerate(header.tools_json)
            request["tools"] = [loads(tool, f"header.tools_json[{i}]") for i, tool in tools]
        # The messages are never a parameter.
        request |= {key: value for key, value in parameters.items() if key != self.messages}
        return self._with_effort(request, header.reasoning_effort)

    def _with_effort(self, request: JsonObject, effort: str) -> JsonObject:
        if not effort:
            return request
        *outer, name = self.effort
        if not outer:
            return {**request, name: effort}
        return {**request, outer[0]: {name: effort, **members(request, outer[0])}}

    def _taken_effort(self, parameters: JsonObject) -> str:
        *outer, name = self.effort
        if not outer:
            return _taken_text(parameters, name)
        inner = dict(members(parameters, outer[0]))
        effort = _taken_text(inner, name)
        if effort:
            parameters[outer[0]] = inner
        if effort and not inner:
            del parameters[outer[0]]
        return effort

    def _taken_system(self, parameters: JsonObject) -> tuple[str, JsonObject]:
        """Take the system prompt out, as one text, with a hint of the lengths of its blocks."""
        if self.system is None:
            return "", {}
        blocks = parameters.get(self.system)
        if not isinstance(blocks, list) or not all(map(_is_text, blocks)):
            return _taken_text(parameters, self.system), {}
        texts = [str(block["text"]) for block in blocks]
        if not any(texts):
            return "", {}
        del parameters[self.system]
        return SEPARATOR.join(texts), {"system": [len(text) for text in texts]}


def _is_text(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") == "text" and is_plain_text(block)


def _prompt(prompt: str, lengths: object) -> object:
    """Return the prompt as one text, or as blocks of these lengths if they add up to it."""
    if not isinstance(lengths, list) or not all(type(length) is int for length in lengths):
        return prompt
    texts, start = [], 0
    for length in lengths:
        texts.append(prompt[start : start + length])
        start += length + len(SEPARATOR)
    if SEPARATOR.join(texts) != prompt:
        return prompt
    return [{"type": "text", "text": text} for text in texts]


def _extended(system: object, more: list[str]) -> object:
    if isinstance(system, list):
        return [*system, *({"type": "text", "text": text} for text in more)]
    return SEPARATOR.join([system, *more] if isinstance(system, str) and system else more)


def _taken_text(parameters: JsonObject, name: str) -> str:
    value = parameters.get(name)
    if not isinstance(value, str) or not value:
        return ""
    del parameters[name]
    return value


def _taken_tools(parameters: JsonObject) -> tuple[str, ...]:
    tools = parameters.get("tools")
    if not isinstance(tools, list) or not tools:
        return ()
    del parameters["tools"]
    return tuple(dumps(tool) for tool in tools)


def _without_notes(parameters: JsonObject) -> JsonObject:
    """Return the parameters without what the converters of this and other providers noted."""
    return {k: value for k, value in parameters.items() if not k.startswith(CONVERTER_PREFIX)}


def _parameters(header: Header) -> JsonObject:
    if not header.parameters_json:
        return {}
    return loads_object(header.parameters_json, "header.parameters_json")
