"""The client a command uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from foldlog.cli.options import resolved
from foldlog.cli.outcome import CommandError, Outcome

if TYPE_CHECKING:
    from foldlog.client.client import Client


@contextmanager
def connected(address: str, *, patient: bool = False) -> Iterator[Client]:
    """Lend a client of the service at an address, or at the one the environment names.

    It tries nothing again unless it is to be patient: whoever waits at a prompt wants to know.
    Raises CommandError where the service cannot be reached.
    """
    from foldlog.client import errors
    from foldlog.client.client import Client

    where = resolved(address)
    try:
        client = Client(where) if patient else Client(where, retry=None)
    except ValueError as error:
        raise CommandError(f"{error}.") from None
    try:
        with client:
            yield client
    except errors.ConnectionLostError:
        raise CommandError(
            f"nothing answers at {where}. Start the service with `foldlog serve`, or name it with"
            " --address.",
            Outcome.UNREACHABLE,
        ) from None
    except errors.TransportError as error:
        raise CommandError(f"{where} answers {error}", Outcome.UNREACHABLE) from None
