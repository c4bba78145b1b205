"""Loaded by a server as its sitecustomize: the library of the extra foldlog[zstd] is not there."""

import sys

sys.modules["zstandard"] = None  # type: ignore[assignment]
