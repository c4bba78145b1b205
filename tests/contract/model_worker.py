"""A client process of the model test: random ops on shared sessions, told as JSON lines.

Usage: python -m tests.contract.model_worker ADDRESS SEED COUNT SESSION_ID...
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

import grpc
from foldlog.v1 import service_pb2_grpc

from tests.contract.calls import Calls, fresh_id
from tests.contract.random_ops import drawn, sent


def main(address: str, seed: str, count: str, *session_ids: str) -> None:
    """Run the ops and print what became of each."""
    chance = random.Random(int(seed))
    with grpc.insecure_channel(address) as channel:
        stub: Any = service_pb2_grpc.SessionServiceStub(channel)
        logs = [Calls(stub, each) for each in session_ids]
        for number in range(int(count)):
            told = _step(chance.choice(logs), chance, f"{seed}.{number}")
            sys.stdout.write(json.dumps(told) + "\n")


def _step(log: Calls, chance: random.Random, tag: str) -> dict[str, Any]:
    roll = chance.random()
    next_seq = log.get().next_seq
    told: dict[str, Any] = {"session": log.session_id, "next_seq": next_seq}
    if roll < 0.1:
        piece = log.fold_pieces()[0]
        read = [[each.seq, each.message.text] for each in piece.messages]
        return told | {"next_seq": piece.next_seq, "at_least": next_seq, "read": read}
    if roll < 0.15:
        at_seq = chance.randrange(-1, next_seq)
        child = log.fork(at_seq, fresh_id("child"))
        return told | {"child": child.session_id, "at_seq": at_seq}
    op = drawn(chance, next_seq, tag)
    return told | {"op": op, "outcome": sent(log, op, next_seq)}


if __name__ == "__main__":
    main(*sys.argv[1:])
