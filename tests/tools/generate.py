"""Generates the protobuf code: `python -m tests.tools.generate FOLDER`.

Messages and their types for every proto; client and server classes for those with a service.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.tools.descriptors import files, proto_names, run_protoc

BIN = Path(sys.executable).parent


def generate(folder: Path) -> None:
    """Write the generated code of every proto under `folder`."""
    names = proto_names()
    with_service = [file.name for file in files(names) if file.service]
    run_protoc(f"--python_out={folder}", *_plugin("mypy", folder), *names)
    run_protoc(f"--grpc_python_out={folder}", *_plugin("mypy_grpc", folder), *with_service)


def _plugin(name: str, folder: Path) -> list[str]:
    return [
        f"--plugin=protoc-gen-{name}={BIN / f'protoc-gen-{name}'}",
        f"--{name}_out=quiet:{folder}",
    ]


if __name__ == "__main__":
    generate(Path(sys.argv[1]))
