"""The check is held to its definition on random lists."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from foldlog.core.invariant import CheckOptions, Violation, ViolationKind, check
from foldlog.core.message import Message, OpaquePart, Role, ToolCall

KIND = ViolationKind
OPTIONS = CheckOptions()
ALPHABET = [
    Message(Role.SYSTEM, "s"),
    Message(Role.SYSTEM, "t"),
    Message(Role.USER, "a"),
    Message(Role.USER, "b"),
    Message(Role.USER, None),
    Message(Role.USER, (OpaquePart("k", "[1,2]"),)),
    Message(Role.USER, (OpaquePart("k", "[1, 2]"),)),
    Message(Role.ASSISTANT, "", (ToolCall("c"),)),
    Message(Role.ASSISTANT, "a"),
    Message(Role.TOOL, "r", tool_call_id="c"),
]


def fingerprint(message: Message) -> tuple[object, ...]:
    if message.role == Role.SYSTEM:
        return ("system",)
    content = message.content
    if isinstance(content, tuple):
        content = "the same JSON"
    calls, answered = message.tool_calls, message.tool_call_id
    return (message.role, content, calls, answered, message.name)


def by_definition(request: list[Message], fold: list[Message]) -> tuple[object, ...] | None:
    """Return (kind, index, lengths, tool_call_id, fingerprints of extra and of missing)."""
    if request and request[0].role == Role.SYSTEM and (not fold or fold[0].role != Role.SYSTEM):
        request = request[1:]
    sent, logged = [*map(fingerprint, request)], [*map(fingerprint, fold)]
    lengths = (len(sent), len(logged))
    if sent != logged:
        shorter = min(lengths)
        index = next((i for i in range(shorter) if sent[i] != logged[i]), shorter)
        extra, missing = Counter(sent) - Counter(logged), Counter(logged) - Counter(sent)
        kind = KIND.EXTRA_MESSAGE if extra else KIND.ORDER
        return (KIND.MISSING_MESSAGE if missing else kind, index, lengths, None, extra, missing)
    for index, message in enumerate(request):
        before = [
            call.id for m in request[:index] if m.role == Role.ASSISTANT for call in m.tool_calls
        ]
        if message.role == Role.TOOL and message.tool_call_id not in before:
            orphan = message.tool_call_id
            return (KIND.ORPHANED_TOOL_RESULT, index, lengths, orphan, Counter(), Counter())
    return None


def told(violation: Violation) -> tuple[object, ...]:
    lengths = (violation.request_length, violation.log_length)
    return (violation.kind, violation.index, lengths, violation.tool_call_id)


@pytest.mark.parametrize("seed", range(4))
def test_the_check_follows_its_definition(seed: int) -> None:
    random = Random(seed)
    seen: Counter[str] = Counter()
    for _ in range(2_000):
        fold = random.choices(ALPHABET, k=random.randint(0, 7))
        request = altered(random, fold)
        violation, expected = check(request, fold), by_definition(request, fold)
        assert (violation is None) == (expected is None), (request, fold)
        if violation is not None and expected is not None:
            assert told(violation) == expected[:4], (request, fold)
            extra, missing = expected[4], expected[5]
            assert isinstance(extra, Counter)
            assert isinstance(missing, Counter)
            assert len(violation.extra) == min(5, extra.total())
            assert len(violation.missing) == min(5, missing.total())
        seen[violation.kind.name if violation else "none"] += 1
    assert len(seen) == 5, seen
    assert min(seen.values()) > 50, seen


def altered(random: Random, fold: list[Message]) -> list[Message]:
    request = list(fold)
    for _ in range(random.choice((0, 0, 1, 1, 2))):
        at = random.randint(0, len(request))
        match random.choice(("insert", "delete", "swap", "overlay")):
            case "insert":
                request.insert(at, random.choice(ALPHABET))
            case "delete":
                del request[at : at + 1]
            case "swap" if len(request) > 1:
                i, j = random.sample(range(len(request)), 2)
                request[i], request[j] = request[j], request[i]
            case "overlay":
                request.insert(0, ALPHABET[0])
    return request
