"""Settings: read from the environment and flags in one place, and written down in one."""

from __future__ import annotations

from pathlib import Path

import pytest
from foldlog.cli.outcome import CommandError
from foldlog.cli.serving import settings_from
from foldlog.settings import Limits, Settings, is_loopback, split_address

from tests.cli.settings_reference import settings_reference

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"


def test_the_reference_is_what_the_settings_say() -> None:
    assert REFERENCE.read_text(encoding="utf-8") == settings_reference()


def test_variables_set_settings_and_limits() -> None:
    settings = Settings.from_environment(
        {"FOLDLOG_POOL_SIZE": "3", "FOLDLOG_TRACING": "Yes", "FOLDLOG_LIMIT_LABELS": "7"}
    )
    assert settings == Settings(pool_size=3, tracing=True, limits=Limits(labels=7))


def test_an_empty_variable_counts_as_not_set() -> None:
    assert Settings.from_environment({"FOLDLOG_POOL_SIZE": ""}) == Settings()


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("FOLDLOG_POOL_SIZE", "many", "a whole number"),
        ("FOLDLOG_FEED_POLL_S", "soon", "a number"),
        ("FOLDLOG_TRACING", "maybe", "true or false"),
        ("FOLDLOG_LOG_FORMAT", "xml", "one of text, json"),
        ("FOLDLOG_POOL_SIZE", "0", "at least 1"),
        ("FOLDLOG_LIMIT_EVENT_BYTES", "-5", "at least 1"),
    ],
)
def test_a_variable_that_does_not_fit_is_named_with_what_it_is_to_be(
    name: str, text: str, expected: str
) -> None:
    with pytest.raises(ValueError, match=f"{name} is to be {expected}"):
        Settings.from_environment({name: text})


def test_a_flag_goes_before_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLDLOG_POOL_SIZE", "3")
    monkeypatch.setenv("FOLDLOG_READER_THREADS", "5")
    settings = settings_from({"pool_size": 9, "reader_threads": None})
    assert (settings.pool_size, settings.reader_threads) == (9, 5)


def test_a_flag_is_held_to_the_same_rules() -> None:
    with pytest.raises(CommandError, match="FOLDLOG_POOL_SIZE is to be at least 1"):
        settings_from({"pool_size": 0})


@pytest.mark.parametrize(
    ("address", "expected"),
    [("127.0.0.1:50551", ("127.0.0.1", 50551)), ("[::1]:0", ("::1", 0)), ("db:1", ("db", 1))],
)
def test_an_address_is_a_host_and_a_port(address: str, expected: tuple[str, int]) -> None:
    assert split_address(address) == expected


@pytest.mark.parametrize("address", ["", "50551", ":50551", "host", "host:", "host:x", "h:65536"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="an address is HOST:PORT"):
        split_address(address)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("127.0.0.5", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("example", False),
    ],
)
def test_only_this_machine_reaches_a_loopback_host(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
