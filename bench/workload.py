"""The workload: turns of four messages, about 3 kB of JSON, with text that compresses as prose."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any, Final

TURN: Final = 4
TOOL: Final = "search_documents"
# In bytes of JSON, role and names included: user 200, assistant with a call 600, tool result
# 1,500, assistant 800.
USER_CHARS: Final = 165
CALLER_CHARS: Final = 190
RESULT_CHARS: Final = 1_430
ANSWER_CHARS: Final = 760
VOCABULARY: Final = 3_000
LETTERS: Final = "etaoinshrdlucmfwypvbgkjqxz"

Json = dict[str, Any]


@cache
def vocabulary() -> Sequence[str]:
    """Return made-up words, the same in each run."""
    dice = random.Random(2)
    return [
        "".join(dice.choices(LETTERS[: dice.randint(8, 26)], k=dice.randint(2, 9)))
        for _ in range(VOCABULARY)
    ]


def text(chars: int, dice: random.Random) -> str:
    """Return words of so many characters in all."""
    words = dice.choices(vocabulary(), k=chars // 3 + 1)
    return " ".join(words)[:chars]


def turns(seed: int = 1) -> Iterator[list[Json]]:
    """Yield turns without end, in the form that chat providers take."""
    dice = random.Random(seed)
    number = 0
    while True:
        yield _turn(f"call_{seed}_{number:06}", dice)
        number += 1


def _turn(call_id: str, dice: random.Random) -> list[Json]:
    arguments = json.dumps({"query": text(120, dice), "limit": 20, "path": text(60, dice)})
    function = {"name": TOOL, "arguments": arguments}
    call = {"id": call_id, "type": "function", "function": function}
    return [
        {"role": "user", "content": text(USER_CHARS, dice)},
        {"role": "assistant", "content": text(CALLER_CHARS, dice), "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": text(RESULT_CHARS, dice)},
        {"role": "assistant", "content": text(ANSWER_CHARS, dice)},
    ]


def messages(count: int, seed: int = 1) -> list[Json]:
    """Return so many messages, in whole turns but for the last."""
    return list(islice((each for turn in turns(seed) for each in turn), count))


def json_bytes(given: Sequence[Json]) -> int:
    """Return the size of messages as JSON, as any store has to keep it at least."""
    return sum(len(json.dumps(each, ensure_ascii=False).encode()) for each in given)
