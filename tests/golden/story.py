"""What the golden databases hold: something of everything that a release can store.

Changed only for a release that has no golden databases yet; older ones keep their own calls.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from foldlog.v1 import event_pb2, message_pb2
from google.protobuf.timestamp_pb2 import Timestamp

from tests.contract.attachments import digest_of, naming, put, sample
from tests.contract.calls import Calls, imported
from tests.contract.recovering import FAILED, FINISHED, logs_call, recover, step_end
from tests.contract.requesting import begin, record, record_header, sent_of
from tests.contract.said import (
    assistant,
    bookkeeping,
    custom,
    event,
    message,
    replacing,
    replacing_entries,
    result,
    system,
    system_message,
    tool_call,
    turn_start,
    user,
    user_message,
)

INLINE_BYTES = 1_000
SMALL, LARGE = sample(300), sample(2_500)
PROMPT = "Prove what the model saw. " * 60
TOOLS = [
    '{"name":"read_file","parameters":{"b":1,"a":1.0}}',
    '{ "name" : "write_file" }' + " " * 1100,
]
USAGE = event_pb2.Usage(
    input_tokens=1_000, output_tokens=20, cache_read_tokens=900, cache_write_tokens=0
)
SESSIONS = (
    "everything",
    "compacted",
    "fork-before",
    "fork-of-fork",
    "rewound",
    "sparse",
    "steps",
    "crashed",
    "import-of-everything",
    "import-of-compacted",
    "import-of-fork-of-fork",
    "checkpointed",
    "séance/日本 🧩",
    "empty",
    "deleted",
)

Stub = Any


def upload(stub: Stub) -> None:
    """Store the attachments that the story names."""
    put(stub, SMALL)
    put(stub, LARGE, piece_bytes=1_000)


def tell(stub: Stub) -> None:
    """Make every session. Each write has a request id."""
    everything(stub)
    compacted_and_forked(stub)
    rewound(stub)
    sparse(stub)
    steps(stub)
    crashed(stub)
    deleted(stub)
    checkpointed(stub)
    Calls.create(stub, "séance/日本 🧩", request_id="new").append(user("名前"), request_id="1")
    Calls.create(stub, "empty", request_id="new")
    for name in ("everything", "compacted", "fork-of-fork"):
        imported(stub, Calls(stub, name).export(), f"import-of-{name}", request_id="import")


def ids() -> Iterator[str]:
    """Yield request ids."""
    return (f"request-{number}" for number in itertools.count())


def everything(stub: Stub) -> None:
    """Every type of event and part, texts that are hard to keep, labels that change."""
    made = {"labels": {"team": "red", "z": ""}, "metadata_json": '{"z": 1.0,"a":[]}'}
    log, request = Calls.create(stub, "everything", request_id="new", **made), ids()
    log.append(*_turn(), request_id=next(request))
    log.append(*_parts(), request_id=next(request))
    log.append(replacing(event(user_message("S", name="")), 6, 9), request_id=next(request))
    log.append(*_trimmed(), request_id=next(request))
    log.update(
        set_labels={"team": "blue"}, remove_labels=["z"], metadata_json="", request_id=next(request)
    )
    epoch = log.open_writer(owner="worker-1", request_id=next(request)).writer_epoch
    log.append(user("fenced"), writer_epoch=epoch, request_id=next(request))
    log.close_writer(epoch, request_id=next(request))


def _turn() -> list[event_pb2.NewEvent]:
    """A turn: seqs 0 to 9."""
    return [
        bookkeeping(
            request_header=event_pb2.RequestHeader(
                provider="openai",
                model="gpt-5",
                parameters_json='{"temperature": 1.0, "seed": 9007199254740993}',
                system_prompt=PROMPT,
                tools_json=TOOLS,
                reasoning_effort="high",
            )
        ),
        system("You are helpful.", time=Timestamp(seconds=-1, nanos=999_999_999)),
        bookkeeping(turn_start=event_pb2.TurnStart(number=1, reason="user")),
        user("nul \0, 🧩, é, e\u0301", time=Timestamp(seconds=253_402_300_799, nanos=1)),
        bookkeeping(step_start=event_pb2.StepStart(number=1, reason="first")),
        event(
            message(
                "assistant",
                tool_calls=[
                    tool_call("c1", "read_file", '{"path": "a.txt"}'),
                    tool_call("c2", "write_file", '{"a": 1, "a":'),
                ],
                reasoning="I shall read.",
                metadata_json='{ "id" : "msg_1" }',
            )
        ),
        logs_call("c1", name="read_file", arguments="{}", idempotency_key="key-1"),
        logs_call("c1", FINISHED),
        result('{"n":9007199254740993}', "c1", name="read_file"),
        logs_call("c2", FAILED),
    ]


def _parts() -> list[event_pb2.NewEvent]:
    """Parts of every kind, what ends a turn, and a custom event: seqs 10 to 15."""
    part, reasoning = message_pb2.Part, message_pb2.Reasoning
    parts = [
        part(text=""),
        part(reasoning=reasoning(text="hm")),
        part(reasoning=reasoning(json='{"sig": "x"}')),
        part(tool_call_index=0),
        part(opaque=message_pb2.OpaquePart(kind="openai.image_url", json='{"url":"a\\/b"}')),
    ]
    said = message("assistant", tool_calls=[message_pb2.ToolCall()])
    said.parts.CopyFrom(message_pb2.PartList(parts=parts))
    grouped = event_pb2.EventBody(message=said, group="msg_2", extra_json='{"id": 1.0}')
    return [
        result("", "c2"),
        event_pb2.NewEvent(body=grouped),
        event(naming(digest_of(SMALL), digest_of(LARGE), name="a.png")),
        bookkeeping(step_end=event_pb2.StepEnd(number=1, reason="stop", usage=USAGE)),
        bookkeeping(turn_end=event_pb2.TurnEnd(number=1, reason="completed", usage=USAGE)),
        custom("note", bytes(range(256)), "key-a", "key-b"),
    ]


def _trimmed() -> list[event_pb2.NewEvent]:
    """A call and its result, and the result trimmed: seqs 17 to 19."""
    shorter = result("lo…", "c9", name="f")
    positions = event_pb2.PositionRange(start=18, stop=18)
    shorter.replace.CopyFrom(event_pb2.Replace(positions=positions, trim=True))
    return [assistant("", "c9"), result("long " * 20, "c9", name="f"), shorter]


def compacted_and_forked(stub: Stub) -> None:
    """Replaces by both addresses, history dropped, and forks that read what was dropped."""
    log, request = Calls.create(stub, "compacted", request_id="new"), ids()
    log.seed(
        system_message("s"),
        *(user_message(f"message {n}") for n in range(8)),
        request_id=next(request),
    )
    fork = log.fork(6, "fork-before", labels={"kind": "fork"}, request_id="fork")
    fork.append(user("in the fork"), assistant("yes", "c1"), request_id="f1")
    log.append(replacing(user("summary of 1 to 3"), 1, 3), request_id=next(request))
    log.append(
        replacing_entries(user("summary of summaries"), 9, 5),
        replacing(user("put between"), 6, 6, allow_empty=True),
        request_id=next(request),
    )
    log.snapshot(request_id=next(request))
    log.append(user("goes on"), request_id=next(request))
    child = fork.fork(7, "fork-of-fork", metadata_json='{"of": "fork"}', request_id="fork")
    child.append(replacing(user("own summary"), 2, 4), request_id="c1")


def rewound(stub: Stub) -> None:
    """Rewinds: back, into an undone part, and to nothing; then history dropped."""
    log, request = Calls.create(stub, "rewound", request_id="new"), ids()
    log.append(turn_start(1), user("a"), user("b"), user("c"), request_id=next(request))
    log.rewind(1, request_id=next(request))
    log.append(user("d"), request_id=next(request))
    log.rewind(3, request_id=next(request))
    log.rewind(-1, request_id=next(request))
    log.append(user("after all"), request_id=next(request))
    log.rewind(2, request_id=next(request))
    log.append(user("e"), request_id=next(request))


def sparse(stub: Stub) -> None:
    """Events under their original seqs, with gaps, and a replace whose targets are gone."""
    log = Calls.create(stub, "sparse", request_id="new")
    log.append(user("first"), request_id="1")
    kept = event_pb2.AppliedReplace(start=3, stop=8, shadowed_seqs=[3, 8])
    log.restore(
        event_pb2.Event(seq=5, body=user("five").body, time=Timestamp(seconds=5)),
        event_pb2.Event(seq=9, body=user("nine").body, replace=kept, request_id="theirs"),
        event_pb2.Event(seq=20, body=custom("k", b"x").body),
        request_id="2",
    )
    log.append(user("last"), request_id="3")


def steps(stub: Stub) -> None:
    """Requests that were begun, recorded, and broken by a change of the header."""
    log = Calls.create(stub, "steps", request_id="new")
    one = event_pb2.RequestHeader(provider="p", model="m", system_prompt=PROMPT)
    record_header(log, one, request_id="h1")
    log.append(turn_start(1), user("q"), request_id="1")
    begun = begin(log, number=1, request_id="s1")
    record(
        log, sent_of(begun.request, converter="openai_chat", converter_version="1"), request_id="r1"
    )
    log.append(assistant("a"), step_end(), request_id="2")
    two = event_pb2.RequestHeader(provider="p", model="m2", system_prompt=PROMPT, tools_json=TOOLS)
    begun = begin(log, user("q2"), number=2, header=two, request_id="s2")
    record(log, sent_of(begun.request, body_sha256=bytes(32)), request_id="r2")
    about = event_pb2.OneShot(purpose="summary", provider="p", model="m", first_seq=2, last_seq=4)
    record(log, event_pb2.SentRequest(built_at_next_seq=5, one_shot=about), request_id="r3")


def crashed(stub: Stub) -> None:
    """A worker that died in a step with calls dispatched, and the one that took over."""
    log = Calls.create(stub, "crashed", request_id="new")
    epoch = log.open_writer(owner="dies", request_id="w").writer_epoch
    log.append(turn_start(1), user("q"), writer_epoch=epoch, request_id="1")
    header = event_pb2.RequestHeader(provider="p", model="m")
    begin(log, number=1, header=header, writer_epoch=epoch, request_id="s")
    log.append(
        assistant("", "c1", "c2"),
        logs_call("c1", name="pay", idempotency_key="once", arguments="{}"),
        writer_epoch=epoch,
        request_id="2",
    )
    epoch = recover(log, owner="goes on", request_id="recover").writer_epoch
    log.append(
        turn_start(2),
        assistant("", "c3"),
        logs_call("c3", name="send"),
        writer_epoch=epoch,
        request_id="3",
    )


def deleted(stub: Stub) -> None:
    """A session that is gone."""
    log = Calls.create(stub, "deleted", request_id="new")
    log.append(user("to be forgotten"), request_id="1")
    log.delete(request_id="delete")


def checkpointed(stub: Stub) -> None:
    """Long enough for a checkpoint, and then some."""
    log = Calls.create(stub, "checkpointed", request_id="new")
    for number in range(30):
        log.append(user(f"message {number}"), request_id=str(number))
    log.append(replacing(user("summary"), 0, 9), request_id="summary")
    log.rewind(25, request_id="rewind")
    log.append(user("after it"), request_id="after")
