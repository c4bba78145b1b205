"""`foldlog serve` and `foldlog migrate`."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from foldlog.cli.outcome import CommandError, Outcome
from foldlog.settings import AuthSettingsError, Setting, Settings, described, split_address

DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="The database. Unset: the configured one.", show_default=False
    ),
]

SERVICE_PASSWORD = "FOLDLOG_SERVICE_PASSWORD"


def settings_from(flags: Mapping[str, Any]) -> Settings:
    """Return the environment's settings with flags over them; a flag that is None was not given.

    Raises CommandError that names what does not parse or is not allowed.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    try:
        for each in described():
            if each.name in given:
                each.require_allowed(given[each.name])
        return replace(Settings.from_environment(), **given)
    except ValueError as error:
        raise CommandError(str(error)) from None


def _option(setting: Setting) -> inspect.Parameter:
    """Return a setting as a command's parameter, so that each is written down once."""
    option = typer.Option(
        help=f"{setting.says} ({_aside(setting)})",
        show_default=False,
        metavar=_metavar(setting),
    )
    kind = Annotated[type(setting.default) | None, option]  # type: ignore[valid-type]
    return inspect.Parameter(
        setting.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind
    )


def _aside(setting: Setting) -> str:
    default = "" if setting.default in ("", False) else f"; unset: {setting.default}"
    return f"{setting.environment_name}{default}"


def _metavar(setting: Setting) -> str | None:
    if setting.one_of:
        return "|".join(setting.one_of)
    last = setting.name.rpartition("_")[2]
    return {"listen": "HOST:PORT", "url": "URL", "file": "FILE", "mode": "MODE"}.get(last)


def with_settings(command: Callable[[Settings], None]) -> Callable[..., None]:
    """Return a command that takes every setting as a flag and calls the given one with them all."""

    @wraps(command)
    def taking(**flags: Any) -> None:
        command(settings_from(flags))

    parameters = [_option(each) for each in described() if not each.is_secret]
    taking.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    taking.__annotations__ = {each.name: each.annotation for each in parameters}
    return taking


@with_settings
def serve(settings: Settings) -> None:
    """Serve until SIGTERM or Ctrl-C, which let running calls end.

    With no flags at all: on SQLite in ./foldlog.db. Every flag is an environment variable too;
    limits are variables only, FOLDLOG_LIMIT_..., and stand in the reference of the settings.
    """
    from eventsourcing.persistence import PersistenceError

    from foldlog.server.tls import CertificateError, PlaintextError
    from foldlog.server.workers import WorkerFailedError, WorkerSettingsError, require_shareable

    _require_signing_key(settings.signing_key_file)
    _require_address(settings)
    try:
        require_shareable(settings)
        _serve(settings)
    except WorkerFailedError as error:
        raise typer.Exit(error.exit_code) from None
    except WorkerSettingsError as error:
        raise CommandError(f"{error}.") from None
    except (CertificateError, PlaintextError, AuthSettingsError) as error:
        raise CommandError(f"{error}.") from None
    except (PersistenceError, ValueError, ImportError) as error:
        raise database_trouble(error) from None
    except OSError as error:
        raise CommandError(f"{error}. Is it in use? Name another one, or port 0 for any.") from None


def _serve(settings: Settings) -> None:
    """Serve with this process, be it a worker or the only one, or with several."""
    from foldlog.server.workers import supervise, supervised

    def announce(address: str) -> None:
        _announce(settings, address)

    ready = supervised()
    if ready is None and settings.workers > 1:
        supervise(settings, announce)
        return
    from foldlog.server.run import run

    run(settings, ready or announce)


def _require_signing_key(file: str) -> None:
    if not file:
        return
    try:
        from foldlog.signing import SigningKey, SigningKeyError
    except ImportError as error:
        raise CommandError(f"{error}.") from None
    try:
        SigningKey.read(Path(file))
    except SigningKeyError as error:
        raise CommandError(f"the signing key cannot be used: {error}.") from None


def _require_address(settings: Settings) -> None:
    try:
        split_address(settings.listen)
    except ValueError as error:
        raise CommandError(f"--listen: {error}") from None


def _announce(settings: Settings, address: str) -> None:
    if settings.address_file:
        _write_whole(Path(settings.address_file), f"{address}\n")
    if settings.allow_plaintext and not settings.tls_certificate_file:
        typer.secho(
            f"foldlog: warning: {address} speaks plaintext: whoever is on the way reads along.",
            fg="yellow",
            err=True,
        )
    typer.echo(
        f"Foldlog serves at {address} on {_without_password(settings.database_url)}."
        " Stop it with Ctrl-C."
    )


def _write_whole(path: Path, text: str) -> None:
    """Write a file so that whoever sees it sees all of it."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def _without_password(url: str) -> str:
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    if not parts.password:
        return url
    user, _, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{user.split(':')[0]}:***@{host}").geturl()


def database_trouble(error: Exception) -> CommandError:
    """Return what a command says where its database cannot be used."""
    from foldlog.persistence.errors import is_unavailable

    said = f"the database cannot be used: {' '.join(str(error).split())}."
    if not is_unavailable(error):
        return CommandError(said)
    return CommandError(f"{said} Find out why with: foldlog doctor", Outcome.UNREACHABLE)


def migrate(
    database_url: DatabaseUrl = None,
    service_user: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Let this PostgreSQL user serve, bound by row-level security; one that is missing"
            f" is made, with the password in {SERVICE_PASSWORD}.",
            show_default=False,
        ),
    ] = None,
    only_roles: Annotated[
        bool,
        typer.Option(
            "--only-roles",
            help="Make PostgreSQL's roles of row-level security and nothing else: before a restore"
            " into a server that lacks them.",
        ),
    ] = False,
) -> None:
    """Bring the database's schema up to this release. Safe to run again, and by several at once."""
    from eventsourcing.persistence import PersistenceError

    from foldlog.persistence import migrate as schema

    settings = settings_from({"database_url": database_url})
    where = _without_password(settings.database_url)
    try:
        if only_roles:
            schema.make_roles(settings.database_url)
            typer.echo(f"the server of {where} has the roles")
            return
        user = service_user and schema.ServiceUser(
            service_user, os.environ.get(SERVICE_PASSWORD, "")
        )
        applied = schema.migrate(settings.database_url, service_user=user or None)
    except (PersistenceError, ValueError, OSError, ImportError) as error:
        raise database_trouble(error) from None
    for name in applied:
        typer.echo(f"applied {name}")
    typer.echo(f"{where} is up to date{'' if applied else ': nothing to apply'}")
