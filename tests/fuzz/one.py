"""Fuzzes one target, guided by which of our code its inputs reach: python -m tests.fuzz.one."""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["foldlog"]):
    from tests.fuzz.targets import TARGETS

LIMITS = ("-max_len=65536", "-timeout=60", "-rss_limit_mb=3000", "-print_final_stats=1")


def main(name: str, folder: Path, seconds: int) -> None:
    """Fuzz a target for so long. What makes it fail is written to crash-* and so on."""
    target = TARGETS[name]
    seeds, found = folder / "seeds", folder / "corpus"
    for each in (seeds, found):
        each.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(target.corpus()):
        (seeds / f"{number}").write_bytes(data)
    options = [f"-artifact_prefix={folder}/", f"-max_total_time={seconds}", *LIMITS]
    atheris.Setup([name, *options, str(found), str(seeds)], target.run)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
