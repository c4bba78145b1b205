"""Files with secrets, which nobody but their owner is to change or everybody to read."""

from __future__ import annotations

import stat
from pathlib import Path

# A group may read: that is how secrets are mounted into containers.
TOO_OPEN = stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH


def require_private(path: Path) -> None:
    """Raise ValueError that says what to do if others can read or write a file; and OSError."""
    if path.stat().st_mode & TOO_OPEN:
        raise ValueError(f"others can read or write {path}: chmod 600 {path}")
