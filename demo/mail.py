"""The tool that sends mail: a file with one line for each mail that went out."""

from __future__ import annotations

from pathlib import Path


class Mail:
    """Sends each mail once: it knows one that it is asked for again by its idempotency key."""

    def __init__(self, outbox: Path) -> None:
        self._outbox = outbox

    @property
    def sent(self) -> list[str]:
        """The keys of what went out, in order."""
        return self._outbox.read_text().splitlines() if self._outbox.exists() else []

    def send(self, key: str) -> bool:
        """Send a mail unless it went out before; return whether it did so now."""
        if key in self.sent:
            return False
        with self._outbox.open("a") as outbox:
            outbox.write(f"{key}\n")
        return True
