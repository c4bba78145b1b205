"""Random ops as data: drawn, sent through the API, and understood by the model alike."""

from __future__ import annotations

import random
from typing import Any

import grpc
from foldlog.v1 import event_pb2

from tests.contract.calls import Calls
from tests.contract.refusal import refusal_of
from tests.contract.said import replacing, replacing_entries, system, turn_start, user


def drawn(chance: random.Random, next_seq: int, tag: str) -> dict[str, Any]:
    """Return a random op for a session of this length; some are to be refused."""

    def seq() -> int:
        near = chance.randrange(max(0, next_seq - 8), next_seq + 2)
        return chance.choice([near, chance.randrange(-1, next_seq + 2)])

    kind = chance.choices(
        ["append", "bookkeeping", "positions", "entries", "rewind", "restore"],
        [8, 2, 5, 3, 2, 1],
    )[0]
    op: dict[str, Any] = {"op": kind, "text": tag}
    match kind:
        case "append":
            op["texts"] = [f"{tag}.{i}" for i in range(chance.randrange(1, 5))]
        case "positions":
            start = seq()
            op |= {"start": start, "stop": start + chance.randrange(-1, 5)}
            op["allow_empty"] = chance.random() < 0.3
        case "entries":
            op |= {"first": seq(), "last": seq()}
        case "rewind":
            op["to"] = seq()
        case "restore":
            op["gap"] = chance.randrange(3)
    return op


def sent(log: Calls, op: dict[str, Any], expected: int) -> str:
    """Send an op for a session of a length; return "ok" or the reason of the refusal."""
    try:
        _send(log, op, expected)
    except grpc.RpcError as error:
        return refusal_of(error).reason or error.code().name
    return "ok"


def _send(log: Calls, op: dict[str, Any], expected: int) -> None:
    text = op.get("text", "")
    match op["op"]:
        case "append":
            log.append(*map(user, op["texts"]), expected_next_seq=expected)
        case "bookkeeping":
            log.append(turn_start(), expected_next_seq=expected)
        case "positions":
            new = replacing(system(text), op["start"], op["stop"], allow_empty=op["allow_empty"])
            log.append(new, expected_next_seq=expected)
        case "entries":
            new = replacing_entries(system(text), op["first"], op["last"])
            log.append(new, expected_next_seq=expected)
        case "rewind":
            log.rewind(op["to"], expected_next_seq=expected)
        case "restore":
            event = event_pb2.Event(seq=expected + op["gap"], body=user(text).body)
            log.restore(event, expected_next_seq=expected)
        case "snapshot":
            log.snapshot()
