"""`python -m demo`: tells the story on a server of its own, in a temporary folder."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from demo.screen import ClaimError, Screen
from demo.server import Server
from demo.story import tell


def main() -> int:
    """Tell the story; 0 if all of it held."""
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("--folder", type=Path, help="keep the database here, to look at it later")
    folder: Path | None = parser.parse_args().folder
    if folder is not None:
        if folder.exists() and any(folder.iterdir()):
            parser.error(f"{folder} is not empty")
        folder.mkdir(parents=True, exist_ok=True)
        return _run(folder.absolute())
    with tempfile.TemporaryDirectory(prefix="foldlog-demo-") as temporary:
        return _run(Path(temporary))


def _run(folder: Path) -> int:
    server = Server(folder)
    try:
        tell(Screen(), server)
    except ClaimError as error:
        print(f"\nThis did not hold: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
