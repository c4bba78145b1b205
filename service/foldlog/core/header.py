"""The request header as a value, and how two of them compare."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import IntEnum

from foldlog.core.canonical import canonical


class HeaderReason(IntEnum):
    """Why a header was written. The numbers are those of the wire."""

    UNSPECIFIED = 0
    INITIAL = 1
    RESUME = 2
    CHANGE = 3

    @classmethod
    def _missing_(cls, value: object) -> HeaderReason:
        """Of a newer release: it was written, and no more is known."""
        return cls.CHANGE


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


def reason_to_write(
    logged: Header | None, sent: Header, *, is_first_of_epoch: bool, skip_unchanged: bool = False
) -> HeaderReason | None:
    """Return why a header is owed to a log whose header is `logged`, or None if none is owed.

    The first of a log is INITIAL. The first of a writer epoch is RESUME and owed even if nothing
    changed, unless that is to be skipped. Else one is owed if it differs.
    """
    if logged is None:
        return HeaderReason.INITIAL
    differs = bool(differing_fields(logged, sent))
    if is_first_of_epoch and (differs or not skip_unchanged):
        return HeaderReason.RESUME
    return HeaderReason.CHANGE if differs else None
