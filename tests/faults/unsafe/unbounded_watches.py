"""Foldlog, but a watch takes as much into memory as it likes."""

from __future__ import annotations

from foldlog.application import watching
from foldlog.cli import main

if __name__ == "__main__":
    vars(watching)["BATCH_BYTES"] = 1 << 40
    main()
