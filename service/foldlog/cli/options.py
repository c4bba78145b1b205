"""The options that many commands share."""

from __future__ import annotations

import os
from typing import Annotated

import typer

DEFAULT_ADDRESS = "127.0.0.1:50551"

SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="The session's id.")]
Address = Annotated[
    str,
    typer.Option(
        "--address",
        metavar="HOST:PORT",
        show_default=False,
        help=f"The server. Unset: FOLDLOG_ADDRESS, else {DEFAULT_ADDRESS}.",
    ),
]
ApiKeyFile = Annotated[
    str,
    typer.Option(
        "--api-key-file",
        metavar="FILE",
        envvar="FOLDLOG_API_KEY_FILE",
        show_default=False,
        help="A file that holds the API key. Unset: FOLDLOG_API_KEY holds it, if one is needed.",
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print JSON for programs.", show_default=False)
]
AtSeq = Annotated[
    int | None,
    typer.Option("--at", metavar="SEQ", help="As it was right after this seq; -1: the empty log."),
]
RequestId = Annotated[
    str | None,
    typer.Option(
        "--request-id",
        metavar="ID",
        help="Makes a repeated command one write: the same id gets the first answer.",
    ),
]
Labels = Annotated[
    list[str] | None, typer.Option("--label", metavar="KEY=VALUE", help="A label; may be repeated.")
]
WriterEpoch = Annotated[
    int | None,
    typer.Option("--writer-epoch", metavar="N", help="The writer epoch, where one is in force."),
]
ExpectedNextSeq = Annotated[
    int | None,
    typer.Option("--expected-next-seq", metavar="SEQ", help="Refuse if another write came first."),
]


def parsed_labels(given: list[str] | None) -> dict[str, str]:
    """Return labels given as KEY=VALUE."""
    labels = {}
    for each in given or []:
        key, equals, value = each.partition("=")
        if not equals or not key:
            raise typer.BadParameter(f"a label is KEY=VALUE, not {each!r}", param_hint="--label")
        labels[key] = value
    return labels


def resolved(address: str) -> str:
    """Return the address a command is to use: the one given, the environment's or the default."""
    return address or os.environ.get("FOLDLOG_ADDRESS") or DEFAULT_ADDRESS
