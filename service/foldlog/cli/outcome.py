"""How a command ends: its exit code, and one line that says what went wrong and what to do."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from foldlog.core import errors
from foldlog.core.errors import FoldlogError

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
    errors.HasForksError: "Include the forks.",
    errors.RequestIdReusedError: "Choose another --request-id.",
    errors.SessionExistsError: "Choose another id, or use this session.",
    errors.SessionNotFoundError: "See which there are: foldlog sessions.",
    errors.SessionDeletedError: "A deleted session's id is never used again; choose another.",
    errors.EventCorruptError: "See what is damaged: foldlog verify SESSION; then restore a backup.",
    errors.OverloadedError: "Wait a moment, then try again.",
    errors.StoreUnavailableError: "See what is wrong with the database: foldlog doctor.",
    errors.HeaderMissingError: "Append a request header first.",
    errors.InternalError: "Look for the id in the server's log.",
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
    """A group whose commands end with one line and an exit code instead of a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except CommandError as error:
            end(str(error), error.outcome)
        except FoldlogError as error:
            end(f"{error}. {_advice(error)}", outcome_of(error))
        except BrokenPipeError:
            end("", Outcome.OK)


def outcome_of(error: FoldlogError) -> Outcome:
    """Return the exit code that stands for an error of the service."""
    match error:
        case errors.StoreUnavailableError() | errors.ShuttingDownError():
            return Outcome.UNREACHABLE
        case errors.EventCorruptError() | errors.RequestNotDerivableError():
            return Outcome.FINDING
    return Outcome.BAD_INPUT


def end(message: str, outcome: Outcome) -> NoReturn:
    """Print a line to stderr and end the command."""
    from foldlog.cli.terminal import printable

    if message:
        typer.echo(f"foldlog: {printable(message.strip())}", err=True)
    raise typer.Exit(outcome)


def _advice(error: FoldlogError) -> str:
    return ADVICE.get(type(error), "")
