"""Files with anything anywhere: they are read or refused, and nothing else happens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from foldlog.importers.errors import UnreadableFileError
from foldlog.importers.formats import Format

from tests.importers.reading import NAMES, bytes_of, lines, read, rows_of

ODD: tuple[object, ...] = ([], {}, [{}], -1, {"type": []})
AS_ANOTHER = (b"[]", b"{}\n", b'{"type": []}\n', b'[{"content": [{"type": {}}]}]')


def places(value: object) -> Iterator[tuple[Any, Any]]:
    """Yield every object and list in a value, each with the name or index of what it holds."""
    names = list(value) if isinstance(value, dict) else None
    if isinstance(value, list):
        names = list(range(len(value)))
    for name in names or ():
        yield value, name
        yield from places(value[name])  # type: ignore[index]


def oddities(name: str) -> Iterator[bytes]:
    """Yield a file with each of its values in turn in the place of something else."""
    value: Any = rows_of(name) if name.endswith(".jsonl") else json.loads(bytes_of(name))
    for number, (holder, at) in enumerate(list(places(value))):
        kept, holder[at] = holder[at], ODD[number % len(ODD)]
        yield lines(value) if name.endswith(".jsonl") else json.dumps(value).encode()
        holder[at] = kept


@pytest.mark.parametrize("name", NAMES)
def test_any_value_in_any_place_is_read_or_refused(name: str) -> None:
    read_count = 0
    for number, data in enumerate(oddities(name)):
        with suppress(UnreadableFileError):
            read(data, salvage=bool(number % 2))
            read_count += 1
    assert read_count


@pytest.mark.parametrize("format_", [f for f in Format if f not in (Format.AUTO, Format.FOLDLOG)])
@pytest.mark.parametrize("name", NAMES)
def test_a_file_read_as_another_format_is_read_or_refused(name: str, format_: Format) -> None:
    for data in (
        bytes_of(name),
        b"[]",
        b"{}\n",
        b'{"type": []}\n',
        b'[{"content": [{"type": {}}]}]',
    ):
        with suppress(UnreadableFileError):
            read(data, format_)
