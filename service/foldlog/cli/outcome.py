"""How a command ends: its exit code, and one line that says what went wrong and what to do."""

from __future__ import annotations

import os
import sys
from enum import IntEnum
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from foldlog.core import errors
from foldlog.core.errors import FoldlogError

# The class of every fault in how a command was called; typer exports this one below it.
UsageError: Any = typer.BadParameter.__bases__[0]

ADVICE: dict[type[FoldlogError], str] = {
    errors.SeqConflictError: "Read the session again, then repeat the write.",
    errors.SeqBeyondHeadError: "Name a seq below next_seq.",
    errors.StaleWriterError: "Another worker has the session; stop writing to it.",
    errors.WriterEpochRequiredError: "A worker has the session; give its epoch as --writer-epoch.",
    errors.HistoryDroppedError: "Name a seq from which history is whole.",
    errors.EntryNotLiveError: "See what is live: foldlog show SESSION.",
    errors.EmptyRangeError: "See what is live: foldlog show SESSION.",
    errors.UnbalancedRangeError: "Widen the range so that calls and their results go together.",
    errors.OpenTurnError: "Choose a seq before that turn, or leave out --require-closed-turn.",
    errors.HasForksError: "To erase them as well: --include-forks.",
    errors.RequestIdReusedError: "Choose another --request-id.",
    errors.SessionExistsError: "Choose another id, or use this session.",
    errors.SessionNotFoundError: "See which there are: foldlog sessions.",
    errors.SessionDeletedError: "A deleted session's id is never used again; choose another.",
    errors.EventCorruptError: "See what is damaged: foldlog verify SESSION; then restore a backup.",
    errors.EncryptionKeyMissingError: "See which are missing: foldlog master-key list.",
    errors.AttachmentNotFoundError: "Store it first: foldlog attach put FILE.",
    errors.AttachmentUnknownError: "Store it: foldlog attach put FILE.",
    errors.AttachmentCorruptError: "Store the right bytes again: foldlog attach put FILE.",
    errors.OverloadedError: "Wait a moment, then try again.",
    errors.StoreDamagedError: "See what is damaged: foldlog doctor; then restore a backup.",
    errors.StoreUnavailableError: "See what is wrong with the database: foldlog doctor.",
    errors.HeaderMissingError: "Append a request header first.",
    errors.SigningKeyMissingError: "Make one: foldlog signing-key FILE; then serve with it.",
    errors.InternalError: "Look for the id in the server's log.",
    errors.UnauthenticatedError: "Give a key: FOLDLOG_API_KEY, or foldlog --api-key-file FILE ...",
    errors.PermissionDeniedError: "See what a key may: foldlog keys list.",
    errors.QuotaExceededError: "Make room, or raise it: foldlog quotas set.",
    errors.ShuttingDownError: "Try again once the server is back.",
}


class Outcome(IntEnum):
    """The exit codes."""

    OK = 0
    FINDING = 1
    BAD_INPUT = 2
    UNREACHABLE = 3


class CommandError(Exception):
    """A command cannot do what it was asked to. Its text is one line for people."""

    def __init__(self, message: str, outcome: Outcome = Outcome.BAD_INPUT) -> None:
        self.outcome = outcome
        super().__init__(message)


class Commands(TyperGroup):
    """A group whose commands end with one line and an exit code, never with a traceback."""

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run a command line and exit."""
        _open_closed_streams()
        try:
            code = super().main(*args, **extra | {"standalone_mode": False})
            sys.stdout.flush()
        except CommandError as error:
            code = _ended(str(error), error.outcome)
        except FoldlogError as error:
            code = _ended(f"{error}. {ADVICE.get(type(error), '')}", outcome_of(error))
        except UsageError as error:
            code = _ended(_usage(error), Outcome.BAD_INPUT)
        except OSError as error:
            code = _ended(f"{error.strerror or error}", Outcome.BAD_INPUT)
            _let_output_go()
        sys.exit(code)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; if who reads its output goes away, that is its end and no fault."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _let_output_go()
            raise typer.Exit from None


class PlainHelp(TyperCommand):
    """A command of so many options that a table of them would cut their names off."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the options one below the other."""
        self.rich_markup_mode = None
        super().format_help(ctx, formatter)


def _open_closed_streams() -> None:
    """Give a process that was started without an input or an output empty ones."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115 - as long as the process
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115


def _let_output_go() -> None:
    """Let what is left in the buffer go nowhere, so that Python's exit does not complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _usage(error: typer.BadParameter) -> str:
    path = error.ctx.command_path if error.ctx else "foldlog"
    return f"{error.format_message().rstrip('.')}. See: {path} --help"


def outcome_of(error: FoldlogError) -> Outcome:
    """Return the exit code that stands for an error of the service."""
    match error:
        case errors.StoreUnavailableError() | errors.ShuttingDownError():
            return Outcome.UNREACHABLE
        case (
            errors.EventCorruptError()
            | errors.AttachmentCorruptError()
            | errors.StoreDamagedError()
            | errors.RequestNotDerivableError()
        ):
            return Outcome.FINDING
    return Outcome.BAD_INPUT


def _ended(message: str, outcome: Outcome) -> Outcome:
    from foldlog.cli.terminal import printable

    typer.echo(f"foldlog: {printable(message.strip())}", err=True)
    return outcome
