"""The request header as a value, and how two of them compare."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from foldlog.core.canonical import canonical


@dataclass(frozen=True, slots=True)
class Header:
    """The non-message part of a provider request. Empty values mean absence."""

    provider: str = ""
    model: str = ""
    parameters_json: str = ""
    system_prompt: str = ""
    tools_json: tuple[str, ...] = ()
    reasoning_effort: str = ""


_NAMES = tuple(field.name for field in fields(Header))

# Members of the parameters that tell how a converter's request was written, not what it asked for.
CONVERTER_PREFIX = "foldlog."


def canonicalised(header: Header) -> Header:
    """Return the header in the form in which headers compare.

    JSON is canonical and an object of parameters without members is absent; members that are null
    stay, and so does the order of the tools. What a converter noted for itself is left out.
    """
    parameters = canonical(header.parameters_json, without=CONVERTER_PREFIX)
    return replace(
        header,
        parameters_json="" if parameters == "{}" else parameters,
        tools_json=tuple([canonical(tool) for tool in header.tools_json]),
    )


def differing_fields(
    logged: Header | None, sent: Header | None, byte_exact: bool = False
) -> tuple[str, ...]:
    """Return the names of the fields in which two headers differ; no header is an empty one.

    With byte_exact, the same JSON in other bytes differs too, but for absent parameters.
    """
    a, b = logged or Header(), sent or Header()
    if a == b:
        return ()
    a_form, b_form = canonicalised(a), canonicalised(b)
    if byte_exact:
        a_form, b_form = _as_written(a, a_form), _as_written(b, b_form)
    return tuple(name for name in _NAMES if getattr(a_form, name) != getattr(b_form, name))


def _as_written(header: Header, form: Header) -> Header:
    return header if form.parameters_json else replace(header, parameters_json="")
