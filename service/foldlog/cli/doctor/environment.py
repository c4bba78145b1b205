"""Doctor's look at this machine's Python, packages and settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec

from foldlog.cli.doctor.finding import Finding, fault, note, ok, warning
from foldlog.settings import Limits, Settings, described, is_loopback, is_open, split_address

OLDEST_PYTHON = (3, 11)
CHECK_MODES = ("off", "warn", "strict")
# Variables of ours that are no settings of the service.
CLIENT_VARIABLES = frozenset(
    {
        "FOLDLOG_ADDRESS",
        "FOLDLOG_API_KEY",
        "FOLDLOG_API_KEY_FILE",
        "FOLDLOG_TLS",
        "FOLDLOG_CA_FILE",
        "FOLDLOG_CLIENT_CERTIFICATE_FILE",
        "FOLDLOG_CLIENT_KEY_FILE",
        "FOLDLOG_SERVER_NAME",
    }
)


def python() -> Iterator[Finding]:
    """Look at the interpreter."""
    running = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        yield fault(
            "python",
            f"Python {running} is too old",
            f"Foldlog is written for Python {oldest} and newer.",
            "Install a newer Python and make the environment again.",
        )
    else:
        yield ok("python", f"Python {running}")


def packages(settings: Settings) -> Iterator[Finding]:
    """Look at installed packages: do their versions fit, is what the settings need there?"""
    yield from _versions()
    needs = {
        "alembic": ("postgres", settings.database_url.startswith("postgres")),
        "prometheus_client": ("metrics", bool(settings.metrics_listen)),
        "opentelemetry": ("tracing", settings.tracing),
        "jwt": ("oidc", "oidc" in settings.auth),
    }
    for module, (extra, wanted) in needs.items():
        if wanted and find_spec(module) is None:
            yield fault(
                "packages",
                f"{module} is not installed",
                "The settings ask for something that needs it.",
                f"pip install 'foldlog[{extra}]'",
            )


def _versions() -> Iterator[Finding]:
    try:
        release = version("foldlog")
    except PackageNotFoundError:
        yield note("packages", "foldlog runs from source and is not installed")
        return
    misfits = [*_misfits(requires("foldlog") or [])]
    if not misfits:
        yield ok("packages", f"foldlog {release}; every package it needs is there and fits")
    for what, requirement in misfits:
        yield fault(
            "packages",
            what,
            "Other versions were not tested and may not even start.",
            f"pip install '{requirement}'",
        )


def _misfits(requirements: list[str]) -> Iterator[tuple[str, str]]:
    from packaging.requirements import Requirement

    for requirement in map(Requirement, requirements):
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            found = version(requirement.name)
        except PackageNotFoundError:
            yield f"{requirement.name} is not installed", str(requirement)
            continue
        if not requirement.specifier.contains(found, prereleases=True):
            yield (
                f"{requirement.name} is {found}, and not {requirement.specifier}",
                str(requirement),
            )


def settings(given: Settings, environment: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """Look at the settings: names that mean nothing, values that are risky."""
    found = [*_unknown_variables(environment), *_risky(given)]
    yield from found or [ok("settings", "every setting is known and sound")]


def _unknown_variables(environment: Mapping[str, str]) -> Iterator[Finding]:
    known = {each.environment_name for each in (*described(), *described(Limits))}
    for name in sorted(environment):
        if name.startswith("FOLDLOG_") and name not in known | CLIENT_VARIABLES:
            yield warning(
                "settings",
                f"{name} is no setting",
                "A misspelt variable is read by nobody.",
                "See the names: foldlog serve --help",
            )


def _risky(given: Settings) -> Iterator[Finding]:
    if given.check_mode.lower() not in CHECK_MODES:
        yield warning(
            "settings",
            f"check_mode {given.check_mode!r} is unknown and means warn",
            "Checks may be meant to be strict, and are not.",
            f"Set FOLDLOG_CHECK_MODE to one of {', '.join(CHECK_MODES)}.",
        )
    for name in ("listen", "metrics_listen"):
        address = getattr(given, name)
        if address:
            yield from _reach(name, address, given)
    yield from _let_in(given)


def _let_in(given: Settings) -> Iterator[Finding]:
    try:
        is_reached = is_open(given)
    except ValueError:
        return
    if is_reached:
        what = "listen is reached from other machines, and auth is none"
        fix = "Make keys with `foldlog keys create`, and set FOLDLOG_AUTH=keys."
        why = "Whoever reaches it reads and writes every session."
        if given.allow_anonymous:
            yield warning("settings", what, why, fix)
        else:
            yield fault("settings", what, "The service refuses to start.", fix)


def _reach(name: str, address: str, given: Settings) -> Iterator[Finding]:
    try:
        host, _ = split_address(address)
    except ValueError as error:
        yield fault("settings", f"{name}: {error}", "The service cannot start.", "Correct it.")
        return
    if is_loopback(host) or (name == "listen" and given.tls_certificate_file):
        return
    what = f"{name} is {address}, which other machines reach, in plaintext"
    fix = "Set FOLDLOG_TLS_CERTIFICATE_FILE, or listen on 127.0.0.1."
    if given.allow_plaintext:
        yield warning("settings", what, "Whoever is on the way reads along.", fix)
    else:
        yield fault("settings", what, "The service refuses to start.", fix)
