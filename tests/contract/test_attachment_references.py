"""Events that name attachments: what they name is there before them, whichever way they come."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from foldlog.v1 import event_pb2, message_pb2, service_pb2

from tests.contract.attachments import digest_of, got, looking, naming, put, sample, stored
from tests.contract.calls import DEADLINE_S, Calls, fresh_id, imported
from tests.contract.refusal import refusal_in, refused
from tests.contract.said import header, replacing, result, user
from tests.served import Served

MIB = 1024 * 1024
ABSENT = b"\7" * 32


def begin_step(log: Calls, *events: event_pb2.NewEvent) -> Any:
    request = service_pb2.BeginStepRequest(session_id=log.session_id, events=events)
    return list(log.stub.BeginStep(request, timeout=DEADLINE_S))


def restored(*events: event_pb2.NewEvent) -> list[event_pb2.Event]:
    return [event_pb2.Event(seq=seq, body=each.body) for seq, each in enumerate(events)]


WAYS: dict[str, Callable[[Calls, message_pb2.Message], Any]] = {
    "append": lambda log, said: log.append(user("a"), event(said)),
    "validate": lambda log, said: log.append(event(said), validate_only=True),
    "replace": lambda log, said: log.append(user("a"), replacing(event(said), 0, 0)),
    "seed": lambda log, said: log.seed(user("a").body.message, said),
    "restore": lambda log, said: log.restore(*restored(user("a"), event(said))),
    "step": lambda log, said: begin_step(log, event(said)),
}


def event(said: message_pb2.Message) -> event_pb2.NewEvent:
    return event_pb2.NewEvent(body=event_pb2.EventBody(message=said))


@pytest.fixture
def headed(log: Calls) -> Calls:
    """A session that can begin steps."""
    log.append(header(model="m"))
    return log


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_an_event_that_names_an_absent_attachment_is_refused(
    stub: Any, way: Callable[[Calls, message_pb2.Message], Any]
) -> None:
    log = Calls.create(stub)
    there = put(stub, b"there").sha256
    with refused("ATTACHMENT_NOT_FOUND", sha256=ABSENT.hex()):
        way(log, naming(there, ABSENT))
    assert log.get().next_seq == 0


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_stated_size_is_to_be_the_stored_one(
    stub: Any, way: Callable[[Calls, message_pb2.Message], Any]
) -> None:
    log = Calls.create(stub)
    five = put(stub, b"bytes").sha256
    with refused("INVALID_FIELD") as told:
        way(log, naming(five, size_bytes=6))
    (field,) = told.fields or {}
    assert field.endswith("parts.parts[1].attachment.size_bytes")
    assert field.startswith(("events[", "messages["))
    assert log.get().next_seq == 0


@pytest.mark.parametrize("way", [WAYS[name] for name in ("append", "seed")], ids=["append", "seed"])
def test_an_event_that_names_a_stored_attachment_is_kept(
    headed: Calls, way: Callable[[Calls, message_pb2.Message], Any]
) -> None:
    five = put(headed.stub, b"bytes").sha256
    said = naming(five, size_bytes=5, name="five.png", media_type="image/png; q=1")
    way(headed, said)
    assert headed.messages()[-1] == said


def test_a_step_may_enter_an_attachment(headed: Calls) -> None:
    five = put(headed.stub, b"bytes").sha256
    begin_step(headed, looking(five))
    assert headed.messages() == [naming(five)]


def test_the_same_bytes_under_two_types_are_one_object_and_two_references(log: Calls) -> None:
    wrong = put(log.stub, b"jpeg", media_type="image/png").sha256
    right = put(log.stub, b"jpeg", media_type="image/jpeg").sha256
    assert wrong == right
    log.append(looking(wrong, media_type="image/png"), looking(right, media_type="image/jpeg"))
    types = [said.parts.parts[1].attachment.media_type for said in log.messages()]
    assert types == ["image/png", "image/jpeg"]


def test_on_a_stream_later_batches_of_the_session_wait_for_the_attachment(log: Calls) -> None:
    there = put(log.stub, b"there").sha256
    sent = [
        service_pb2.AppendStreamRequest(number=number, batch=log.append_request(new))
        for number, new in enumerate([user("a"), looking(there), looking(ABSENT), user("b")])
    ]
    answers = {each.number: each for each in log.stub.AppendStream(iter(sent))}
    assert answers[1].appended.next_seq == 2
    assert refusal_in(answers[2].error).reason == "ATTACHMENT_NOT_FOUND"
    assert refusal_in(answers[2].error).code == grpc.StatusCode.FAILED_PRECONDITION
    assert refusal_in(answers[3].error).reason == "PREVIOUS_BATCH_FAILED"
    assert log.surface() == [0, 1]


def test_a_dropped_event_may_have_named_anything(log: Calls) -> None:
    tombstone = event_pb2.Event(seq=0, type=event_pb2.EVENT_TYPE_USER_MESSAGE, dropped=True)
    replace = event_pb2.AppliedReplace(start=0, stop=0)
    log.restore(tombstone, event_pb2.Event(seq=1, body=user("a").body, replace=replace))
    assert log.get().next_seq == 2


def test_a_large_tool_result_is_a_short_text_and_a_reference(log: Calls) -> None:
    output = sample(3 * MIB)
    ref = message_pb2.AttachmentRef(
        sha256=put(log.stub, output).sha256, media_type="text/plain", size_bytes=len(output)
    )
    parts = [message_pb2.Part(text="3 MiB of output"), message_pb2.Part(attachment=ref)]
    new = result("", "c1")
    new.body.message.parts.CopyFrom(message_pb2.PartList(parts=parts))
    log.append(new)
    (kept,) = log.messages()
    assert got(log.stub, kept.parts.parts[1].attachment.sha256) == output


def exported(log: Calls) -> bytes:
    request = service_pb2.ExportSessionRequest(session_id=log.session_id, with_attachments=True)
    return b"".join(each.data for each in log.stub.ExportSession(request, timeout=DEADLINE_S))


def attachments_in(file: bytes) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in file.splitlines()]
    return [each["attachment"] for each in lines if "attachment" in each]


@pytest.fixture
def pictures(log: Calls) -> dict[bytes, bytes]:
    """A session whose events name an empty, a small and a large attachment, some twice."""
    made = {digest_of(data): data for data in (b"", b"small", sample(2 * MIB + 5, [fresh_id()]))}
    for data in made.values():
        put(log.stub, data)
    log.append(user("a"), looking(*made), looking(*made), user("b"))
    return made


def test_an_export_carries_each_attachment_once_before_the_event_that_names_it(
    log: Calls, pictures: dict[bytes, bytes]
) -> None:
    file = exported(log)
    found: dict[bytes, bytes] = {}
    for each in attachments_in(file):
        data = base64.b64decode(each["data"])
        assert len(data) <= MIB
        whole = found.setdefault(bytes.fromhex(each["sha256"]), b"")
        assert each["offset"] == len(whole)
        found[bytes.fromhex(each["sha256"])] = whole + data
    assert found == pictures
    kinds = ["attachment" in json.loads(line) for line in file.splitlines()]
    assert kinds == [False, False, *[True] * 5, False, False, False, False]
    assert attachments_in(log.export()) == []


def test_a_fresh_server_has_the_attachments_after_the_import(
    log: Calls, pictures: dict[bytes, bytes], serve: Callable[..., Served], backend: str
) -> None:
    file, fresh = exported(log), serve(backend)
    with refused("ATTACHMENT_NOT_FOUND"):
        imported(fresh.stub, log.export())
    imported(fresh.stub, file, sizes=(7, 100_000))
    copy = Calls(fresh.stub, log.session_id)
    assert copy.messages() == log.messages()
    assert {digest: got(fresh.stub, digest) for digest in pictures} == pictures
    assert exported(copy) == file


def edited(file: bytes, index: int, **changes: Any) -> bytes:
    """Return the file with fields of one of its attachment lines changed."""
    lines = file.splitlines()
    numbers = [i for i, line in enumerate(lines) if b'{"attachment"' in line]
    about = json.loads(lines[numbers[index]])["attachment"] | changes
    lines[numbers[index]] = json.dumps({"attachment": about}).encode()
    return b"\n".join(lines) + b"\n"


@pytest.mark.parametrize(
    ("index", "changes"),
    [
        (1, {"data": base64.b64encode(b"SMALL").decode()}),
        (1, {"data": "?"}),
        (1, {"data": None}),
        (1, {"sha256": "x"}),
        (1, {"size_bytes": 6}),
        (1, {"size_bytes": 4}),
        (1, {"offset": 1}),
        (3, {"offset": 0}),
        (3, {"sha256": "07" * 32}),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else str(value),
)
def test_a_damaged_attachment_line_is_named_and_nothing_is_imported(
    log: Calls, pictures: dict[bytes, bytes], index: int, changes: dict[str, Any]
) -> None:
    copy = fresh_id()
    with refused("INVALID_FIELD") as told:
        imported(log.stub, edited(exported(log), index, **changes), copy)
    (field,) = told.fields or {}
    assert field.startswith("line ")
    with refused("SESSION_NOT_FOUND"):
        Calls(log.stub, copy).get()


def test_an_export_with_attachments_tells_of_one_that_is_lost(
    serve: Callable[..., Served], backend: str, tmp_path: Any
) -> None:
    names = {"FOLDLOG_OBJECT_DIRECTORY": str(tmp_path), "FOLDLOG_OBJECT_INLINE_BYTES": "0"}
    served = serve(backend, **names)
    log = Calls.create(served.stub)
    digest = put(served.stub, b"picture").sha256
    log.append(looking(digest))
    for path in tmp_path.rglob("*"):
        if path.is_file():
            path.unlink()
    with refused("ATTACHMENT_CORRUPT", sha256=digest.hex()):
        exported(log)
    assert stored(served.stub, digest) == {digest: 7}
    assert len(log.export().splitlines()) == 3
