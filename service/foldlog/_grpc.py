"""gRPC, imported after the settings that it reads from the environment while it loads.

Every module of the package takes gRPC from here, so that the settings hold whoever comes first.
A setting that is already in the environment stands.
"""

import os

# gRPC's newer event engine costs thread wake-ups: a third of all calls per second on two cores.
# An experiment's name that a release does not know is ignored.
os.environ.setdefault(
    "GRPC_EXPERIMENTS",
    "-event_engine_listener,-event_engine_client,-event_engine_for_all_other_endpoints",
)
# What goes wrong is raised; gRPC's own lines on stderr say it again, for each attempt.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

import grpc
from grpc import aio

__all__ = ["aio", "grpc"]
