"""The commands in one place, and the options that stand before them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.main import get_group

from foldlog.cli.connection import use_key_file
from foldlog.cli.options import Address, ApiKeyFile, AsJson
from foldlog.cli.outcome import Commands, PlainHelp

# Each command, or group of them, by the module and the name that it has there.
PANELS = {
    "Run the service": {
        "serve": "serving.serve",
        "migrate": "serving.migrate",
        "doctor": "diagnosis.doctor",
        "signing-key": "anchoring.signing_key",
        "reindex": "reindexing.reindex",
        "keys": "keys.keys",
        "master-key": "master_keys.master_key",
        "quotas": "quotas.quotas",
    },
    "Sessions": {
        "sessions": "sessions.sessions",
        "create": "sessions.create",
        "info": "sessions.info",
        "label": "sessions.label",
        "delete": "sessions.delete",
        "erase": "sessions.erase",
        "retain": "retaining.retain",
    },
    "Read": {"show": "reading.show", "tail": "reading.tail", "diff": "reading.diff"},
    "Write": {
        "append": "writing.append",
        "replace": "writing.replace",
        "rewind": "writing.rewind",
        "fork": "writing.fork",
        "snapshot": "writing.snapshot",
    },
    "After a crash": {"recover": "recovery.recover", "unresolved": "recovery.unresolved"},
    "Prove": {
        "check": "proof.check",
        "verify": "audit.verify",
        "anchor": "anchoring.anchor",
        "audit": "acts.audit",
        "request": "why.request",
        "why": "why.why",
    },
    "Move": {
        "export": "transfer.export",
        "import": "transfer.import_",
        "attach": "attachments.attach",
    },
}
PANEL_OF = {name: panel for panel, names in PANELS.items() for name in names}


class Loaded(Mapping[str, Any]):
    """The commands by name: one is imported and made when it is asked for.

    A command line uses one of them, and to make all takes longer than most of them run.
    """

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _made(name, PANEL_OF[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(PANEL_OF)

    def __len__(self) -> int:
        return len(PANEL_OF)


def _made(name: str, panel: str) -> Any:
    module, _, attribute = PANELS[panel][name].partition(".")
    found = getattr(import_module(f"foldlog.cli.{module}"), attribute)
    alone = typer.Typer(pretty_exceptions_enable=False)
    if isinstance(found, typer.Typer):
        alone.add_typer(found, name=name, rich_help_panel=panel)
    else:
        kind = PlainHelp if name == "serve" else None
        alone.command(name, cls=kind, rich_help_panel=panel)(found)
    return get_group(alone).commands[name]


class AllCommands(Commands):
    """The group of all commands."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given | {"commands": Loaded()})


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
    ctx.default_map = {ctx.invoked_subcommand: _handed(ctx, given)}


def _handed(ctx: typer.Context, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the defaults of the command that is to run, or of the commands in its group."""
    command: Any = ctx.command
    own = getattr(command.commands.get(ctx.invoked_subcommand), "commands", None)
    return given if own is None else dict.fromkeys(own, given)


app = typer.Typer(
    cls=AllCommands,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.callback()(_hand_down)
