"""The client a command uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from foldlog.cli.options import resolved
from foldlog.cli.outcome import CommandError, Outcome

if TYPE_CHECKING:
    from foldlog.client.client import Client

_key_file: ContextVar[str] = ContextVar("key_file", default="")


def use_key_file(path: str) -> None:
    """Take the API key from a file, for every connection that this command line makes."""
    _key_file.set(path)


def _api_key() -> str | None:
    """Return the key of the file that was named; None means the environment's."""
    path = _key_file.get()
    if not path:
        return None
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} cannot be read: {getattr(error, 'strerror', error)}") from None


@contextmanager
def connected(address: str, *, patient: bool = False) -> Iterator[Client]:
    """Lend a client of the service at an address, or at the one the environment names.

    It tries nothing again unless it is to be patient: whoever waits at a prompt wants to know.
    Raises CommandError where the service cannot be reached.
    """
    from foldlog.client import errors
    from foldlog.client.client import Client

    where, key = resolved(address), _api_key()
    try:
        client = Client(where, api_key=key) if patient else Client(where, retry=None, api_key=key)
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
