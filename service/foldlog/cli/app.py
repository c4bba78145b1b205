"""The commands in one place, and the options that stand before them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from foldlog.cli import (
    acts,
    anchoring,
    attachments,
    audit,
    diagnosis,
    keys,
    master_keys,
    proof,
    quotas,
    reading,
    recovery,
    reindexing,
    retaining,
    serving,
    sessions,
    transfer,
    why,
    writing,
)
from foldlog.cli.connection import use_key_file
from foldlog.cli.options import Address, ApiKeyFile, AsJson
from foldlog.cli.outcome import Commands, PlainHelp

PANELS = {
    "Run the service": (
        serving.serve,
        serving.migrate,
        diagnosis.doctor,
        anchoring.signing_key,
        reindexing.reindex,
    ),
    "Sessions": (
        sessions.sessions,
        sessions.create,
        sessions.info,
        sessions.label,
        sessions.delete,
        sessions.erase,
        retaining.retain,
    ),
    "Read": (reading.show, reading.tail, reading.diff),
    "Write": (writing.append, writing.replace, writing.rewind, writing.fork, writing.snapshot),
    "After a crash": (recovery.recover, recovery.unresolved),
    "Prove": (proof.check, audit.verify, anchoring.anchor, acts.audit, why.request, why.why),
    "Move": (transfer.export, transfer.import_),
}


def _show_version(wanted: bool) -> None:
    if not wanted:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        typer.echo(f"foldlog {version('foldlog')}")
    except PackageNotFoundError:
        typer.echo("foldlog (from source)")
    raise typer.Exit


def _hand_down(
    ctx: typer.Context,
    address: Address = "",
    as_json: AsJson = False,
    api_key_file: ApiKeyFile = "",
    version_: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_version, help="Print the version."),
    ] = False,
) -> None:
    """Foldlog keeps what happened in LLM-agent sessions and proves what the model saw.

    Exit codes: 0 fine, 1 something was found (a violation, a broken chain, a fault), 2 bad input,
    3 unreachable.
    """
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())
        return
    use_key_file(api_key_file)
    given = {name: value for name, value in (("address", address), ("as_json", as_json)) if value}
    names = (_name_of(command) for panel in PANELS.values() for command in panel)
    ctx.default_map = {
        **{name: given for name in names},
        "attach": {command.__name__: given for command in attachments.COMMANDS},
        "keys": dict.fromkeys(keys.COMMANDS, given),
        "master-key": {"list": {"as_json": as_json} if as_json else {}},
        "quotas": dict.fromkeys(quotas.COMMANDS, given),
    }


def _name_of(command: Callable[..., None]) -> str:
    return command.__name__.strip("_").replace("_", "-")


def _made() -> typer.Typer:
    made = typer.Typer(
        cls=Commands,
        invoke_without_command=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(_hand_down)
    for panel, commands in PANELS.items():
        for command in commands:
            kind = PlainHelp if command is serving.serve else None
            made.command(_name_of(command), cls=kind, rich_help_panel=panel)(command)
    made.add_typer(attachments.attach, name="attach", rich_help_panel="Move")
    made.add_typer(keys.keys, name="keys", rich_help_panel="Run the service")
    made.add_typer(master_keys.master_key, name="master-key", rich_help_panel="Run the service")
    made.add_typer(quotas.quotas, name="quotas", rich_help_panel="Run the service")
    return made


app = _made()
