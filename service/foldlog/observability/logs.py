"""Structured logs: one event name and its fields, never a payload."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Mapping

from foldlog.settings import Settings

LOGGER = logging.getLogger("foldlog")
LONGEST_VALUE = 512
_WITH_PREVIEWS = False


class EventMessage:
    """An event name with its fields. Reads as `name key=value ...` in any log format."""

    __slots__ = ("fields", "name")

    def __init__(self, name: str, fields: Mapping[str, object]) -> None:
        self.name = name
        self.fields = fields

    def __str__(self) -> str:
        return " ".join([self.name, *(f"{key}={_quoted(v)}" for key, v in self.fields.items())])


def log(
    event: str,
    level: str = "info",
    *,
    error: BaseException | None = None,
    **fields: object,
) -> None:
    """Log an event by its name, such as `server.started`, with its facts as fields.

    Bytes are logged as their size and long strings are cut, so that no payload gets into a log by
    mistake. Fields whose name ends in `preview` or `previews` are left out unless the setting
    `log_previews` is on. `error` adds a traceback.
    """
    number = logging.getLevelNamesMapping()[level.upper()]
    if LOGGER.isEnabledFor(number):
        LOGGER.log(number, EventMessage(event, _admitted(fields)), exc_info=error)


def configure(settings: Settings) -> None:
    """Send this process's logs to stderr in the format and from the level the settings name."""
    global _WITH_PREVIEWS
    _WITH_PREVIEWS = settings.log_previews
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if settings.log_format == "json" else TextFormatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    LOGGER.setLevel(settings.log_level.upper())


class TextFormatter(logging.Formatter):
    """One line: the time in UTC, the level, the event and its fields."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return _time(record)


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, event, then the fields.

    A record of another library has the event `log` and the fields `logger` and `message`.
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {"time": _time(record), "level": record.levelname.lower()}
        if isinstance(record.msg, EventMessage):
            line |= {"event": record.msg.name, **record.msg.fields}
        else:
            line |= {"event": "log", "logger": record.name, "message": record.getMessage()}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def _time(record: logging.LogRecord) -> str:
    when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{when}.{int(record.msecs):03d}Z"


def _admitted(fields: Mapping[str, object]) -> dict[str, object]:
    return {
        name: _bounded(value)
        for name, value in fields.items()
        if value is not None and (_WITH_PREVIEWS or not name.endswith(("preview", "previews")))
    }


def _bounded(value: object) -> object:
    match value:
        case bytes() | bytearray() | memoryview():
            return f"[{len(value)} bytes]"
        case bool() | int() | float():
            return value
        case list() | tuple() | set() | frozenset():
            return [_bounded(each) for each in value]
    text = str(value)
    return (
        text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}… [{len(text)} characters]"
    )


def _quoted(value: object) -> str:
    """Return a value as a word, in JSON's quotes where it is not one: no log line can be forged."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    plain = text.isprintable() and text and not any(c in text for c in " =\"'")
    return text if plain or not isinstance(value, str) else json.dumps(text)
