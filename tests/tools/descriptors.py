"""What the protos say, as descriptors with their comments."""

from __future__ import annotations

import tempfile
from pathlib import Path

import grpc_tools
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

ROOT = Path(__file__).resolve().parents[2]
PROTOS = ROOT / "protos"
WELL_KNOWN = Path(grpc_tools.__file__).parent / "_proto"


def proto_names() -> list[str]:
    """Return every proto of the repository, relative to protos/, sorted."""
    return sorted(str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto"))


def run_protoc(*arguments: str) -> None:
    """Run protoc with the repository's protos on its path. Raises RuntimeError if it fails."""
    includes = [f"-I{PROTOS}", f"-I{WELL_KNOWN}"]
    if code := protoc.main(["protoc", *includes, *arguments]):
        raise RuntimeError(f"protoc ended with code {code}")


def files(names: list[str]) -> list[FileDescriptorProto]:
    """Return the descriptors of the named protos, in their order, comments included."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "set"
        run_protoc("--include_source_info", f"--descriptor_set_out={target}", *names)
        found = {f.name: f for f in FileDescriptorSet.FromString(target.read_bytes()).file}
    return [found[name] for name in names]
