"""Logs: an event and its fields on one line, and never a payload."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from foldlog.observability.logs import configure, log
from foldlog.settings import Settings


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """Leave Python's logging as it was found."""
    root, ours = logging.getLogger(), logging.getLogger("foldlog")
    handlers, levels = root.handlers[:], (root.level, ours.level)
    yield
    configure(Settings())
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    ours.setLevel(levels[1])


def configured(**settings: Any) -> None:
    configure(replace(Settings(), **settings))


def test_a_line_of_text_has_time_level_event_and_fields(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configured()
    log("server.started", address="127.0.0.1:1", sessions=2, note="two words")
    line = capsys.readouterr().err
    time, rest = line.split(" ", 1)
    assert time.endswith("Z")
    assert rest == 'INFO    server.started address=127.0.0.1:1 sessions=2 note="two words"\n'


def test_a_line_of_json_has_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    configured(log_format="json")
    log("check.violation", "warning", kind="ORDER", index=3)
    line = json.loads(capsys.readouterr().err)
    assert line.pop("time").endswith("Z")
    assert line == {"level": "warning", "event": "check.violation", "kind": "ORDER", "index": 3}


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_field_cannot_forge_a_line(log_format: str, capsys: pytest.CaptureFixture[str]) -> None:
    configured(log_format=log_format)
    log("x", session="a\n2030 ERROR forged\x1b[31m")
    written = capsys.readouterr().err
    assert written.count("\n") == 1
    assert "\x1b" not in written


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_bytes_and_long_texts_are_not_logged_whole(
    log_format: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configured(log_format=log_format)
    log("x", body=b"secret", text="s" * 10_000, many=[b"secret", "s" * 10_000])
    written = capsys.readouterr().err
    assert "secret" not in written
    assert len(written) < 1_500


@pytest.mark.parametrize(("log_previews", "expected"), [(False, False), (True, True)])
def test_previews_are_logged_only_where_the_setting_allows(
    log_previews: bool, expected: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    configured(log_previews=log_previews)
    log("x", preview="hush", extra_previews=["hush"])
    assert ("hush" in capsys.readouterr().err) is expected


def test_the_level_decides_what_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    configured(log_level="warning")
    log("quiet")
    log("loud", "warning")
    assert "quiet" not in (written := capsys.readouterr().err)
    assert "loud" in written


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_an_error_brings_its_traceback(log_format: str, capsys: pytest.CaptureFixture[str]) -> None:
    configured(log_format=log_format)
    try:
        raise KeyError("k")
    except KeyError as error:
        log("call.failed", "error", error=error, log_id="7")
    written = capsys.readouterr().err
    assert "log_id" in written
    assert "Traceback" in written
    assert "KeyError" in written


def test_records_of_libraries_are_told_in_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    configured(log_format="json")
    logging.getLogger("some.library").warning("lost %s", "a connection")
    line = json.loads(capsys.readouterr().err)
    assert (line["event"], line["logger"]) == ("log", "some.library")
    assert line["message"] == "lost a connection"


def test_before_setup_logs_go_where_python_sends_them(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "foldlog"):
        log("append.failed", "warning", reason="OVERLOADED")
    assert caplog.messages == ["append.failed reason=OVERLOADED"]
