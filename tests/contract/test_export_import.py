"""Exports and imports: the same bytes but for the id, and errors that name the line."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from foldlog.v1 import event_pb2, service_pb2
from google.protobuf.timestamp_pb2 import Timestamp

from tests.cases import exports
from tests.contract.abandoned import abandon
from tests.contract.calls import Calls, fresh_id, imported
from tests.contract.refusal import refused
from tests.contract.said import (
    assistant,
    batches,
    bookkeeping,
    custom,
    header,
    replacing,
    result,
    system,
    turn_start,
    user,
    user_message,
)

NewLog = Callable[..., Calls]


@pytest.fixture
def rich(new_log: NewLog) -> Calls:
    """A session with something of everything."""
    log = new_log(labels={"b": "2", "a": "é"}, metadata_json='{"z": 1.0,"a":[]}')
    log.append(header(model="m", tools_json=['{"b":1,"a":1.0}']), turn_start(1), request_id="r1")
    log.append(
        user("q\0é🧩", time=Timestamp(seconds=-1, nanos=999_999_999)),
        assistant("", "c1"),
        bookkeeping(tool_call=event_pb2.ToolCallState(id="c1")),
        result('{"n":9007199254740993}', "c1"),
        custom("k", bytes(range(256)), "key"),
        request_id="r2",
    )
    log.append(replacing(system("S"), 2, 5), user("x"))
    log.snapshot()
    log.append(user("dead end"))
    log.rewind(8)
    log.restore(event_pb2.Event(seq=20, body=user("after a gap").body))
    return log


def copy_of(log: Calls, **fields: Any) -> Calls:
    """Import a session's export under a new id."""
    answer = imported(log.stub, log.export(), fresh_id("copy"), **fields)
    return log.other(answer.session.session_id)


def test_export_import_export_gives_the_same_bytes_but_for_the_id(rich: Calls) -> None:
    first = rich.export()
    copy = copy_of(rich)
    assert exports.renamed(copy.export(), rich.session_id) == first


def test_a_copy_reads_as_the_original(rich: Calls) -> None:
    copy = copy_of(rich)
    assert copy.fold() == rich.fold()
    assert copy.header_answer().header == rich.header_answer().header
    ours, theirs = copy.events(), rich.events()
    for left, right in zip(ours, theirs, strict=True):
        left.ClearField("chain")
        right.ClearField("chain")
        assert left == right
    session, original = copy.get(), rich.get()
    assert (dict(session.labels), session.metadata_json) == (
        *(dict(original.labels), original.metadata_json),
    )
    assert (session.next_seq, session.whole_from_seq) == (21, original.whole_from_seq)
    assert copy.verify().intact
    with refused("HISTORY_DROPPED"):
        copy.fold(3)


def test_a_copy_goes_on(rich: Calls) -> None:
    copy = copy_of(rich)
    assert copy.append(user("next")).first_seq == 21
    copy.rewind(8)
    assert copy.texts() == ["S", "x"]
    assert rich.get().next_seq == 21


def test_an_answer_counts_the_events(rich: Calls) -> None:
    answer = imported(rich.stub, rich.export(), fresh_id())
    assert (answer.count, answer.next_seq) == (12, 21)


def test_epochs_are_not_carried(log: Calls) -> None:
    log.append(user("a"))
    log.open_writer()
    copy = copy_of(log)
    assert copy.get().writer_epoch == 0
    copy.append(user("b"))


def test_a_fork_exports_whole(log: Calls) -> None:
    log.append(user("a"), user("b"), user("c"))
    child = log.fork(1)
    child.append(user("d"))
    copy = copy_of(child)
    assert copy.texts() == ["a", "b", "d"]
    assert copy.lineage() == []
    assert exports.renamed(copy.export(), child.session_id) == child.export()


def test_an_empty_session_can_be_copied(new_log: NewLog) -> None:
    log = new_log(labels={"a": "1"})
    copy = copy_of(log)
    assert copy.events() == []
    assert dict(copy.get().labels) == {"a": "1"}


@pytest.mark.parametrize("sizes", [(1,), (3, 7), (1_000,), (1_000_000,)], ids=str)
def test_any_way_of_cutting_the_file_will_do(log: Calls, sizes: tuple[int, ...]) -> None:
    log.append(user("那個🧩é\u200d" * 50))
    answer = imported(log.stub, log.export(), fresh_id(), sizes)
    assert log.other(answer.session.session_id).messages() == log.messages()


def test_a_large_session_is_exported_in_pieces_for_a_default_client(log: Calls) -> None:
    for batch in batches([user("é" * 300_000) for _ in range(20)]):
        log.append(*batch)
    request = service_pb2.ExportSessionRequest(session_id=log.session_id)
    sizes = [len(each.data) for each in log.stub.ExportSession(request)]
    assert len(sizes) > 3
    assert max(sizes) < 4 * 1024 * 1024
    assert copy_of(log).messages() == log.messages()


def test_without_an_id_the_files_own_is_taken(log: Calls) -> None:
    log.append(user("a"))
    data = log.export()
    with refused("SESSION_EXISTS", session_id=log.session_id):
        imported(log.stub, data)
    new_id = fresh_id()
    answer = imported(log.stub, exports.renamed(data, new_id))
    assert answer.session.session_id == new_id


def test_a_line_has_readable_fields_and_the_body(log: Calls) -> None:
    log.append(user("hello"))
    (line,) = (json.loads(log.export().splitlines()[i]) for i in exports.event_lines(log.export()))
    assert line["seq"] == 0
    assert "user" in line["type"].lower()
    body = event_pb2.EventBody.FromString(base64.b64decode(line["body"]))
    assert body.message == user_message("hello")
    assert "hello" in json.dumps({k: v for k, v in line.items() if k != "body"})


def edited(log: Calls, change: Callable[[dict[str, Any]], None], record: int = 1) -> bytes:
    """Return an export with the n-th event's line changed."""
    lines = log.export().splitlines()
    index = exports.event_lines(log.export())[record]
    line = json.loads(lines[index])
    change(line)
    lines[index] = json.dumps(line).encode()
    return b"\n".join(lines) + b"\n"


@pytest.fixture
def plain(log: Calls) -> Calls:
    """A session of three user messages."""
    log.append(user("a"), user("b"), user("c"))
    return log


def test_a_line_without_a_body_is_accepted(plain: Calls) -> None:
    data = edited(plain, lambda line: line.pop("body"))
    answer = imported(plain.stub, data, fresh_id())
    assert plain.other(answer.session.session_id).messages() == plain.messages()


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.update(seq=0),
        lambda line: line.update(type="no_such_type"),
        lambda line: line.update(type="assistant_message"),
        lambda line: line.update(body="!!"),
        lambda line: line.update(body=base64.b64encode(b"\xff\xff").decode()),
        lambda line: line.update(body=base64.b64encode(b"").decode()),
        lambda line: line.update(time="yesterday"),
        lambda line: line.update(seq="1"),
        lambda line: line.update(seq=1.5),
        lambda line: line.pop("seq"),
    ],
    ids=[
        *("behind", "unknown type", "other type", "no base64", "no body", "empty body"),
        *("time", "text seq", "float seq", "no seq"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_left_behind(
    plain: Calls, change: Callable[[dict[str, Any]], None]
) -> None:
    new_id = fresh_id()
    number = exports.event_lines(plain.export())[1] + 1
    with refused("INVALID_FIELD") as told:
        imported(plain.stub, edited(plain, change), new_id)
    assert any(str(number) in field for field in told.fields or {}), told.fields
    with refused("SESSION_NOT_FOUND"):
        plain.other(new_id).get()


def test_a_readable_field_that_differs_from_the_body_is_an_error(plain: Calls) -> None:
    text = plain.export().decode()
    line = exports.event_lines(plain.export())[1]
    lines = text.splitlines(keepends=True)
    assert '"b"' in lines[line]
    lines[line] = lines[line].replace('"b"', '"B"', 1)
    with refused("INVALID_FIELD") as told:
        imported(plain.stub, "".join(lines).encode(), fresh_id())
    assert any(str(line + 1) in field for field in told.fields or {}), told.fields


@pytest.mark.parametrize(
    "data",
    [b"", b"\n", b"{}\n", b"not json\n", b"[]\n", b"\xff\xfe\n", b'{"session_id":1}\n', b"\0" * 99],
    ids=["nothing", "blank", "no fields", "no json", "a list", "no UTF-8", "odd id", "nul"],
)
def test_what_is_no_export_is_refused(log: Calls, data: bytes) -> None:
    new_id = fresh_id()
    with refused("INVALID_FIELD"):
        imported(log.stub, data, new_id)
    with refused("SESSION_NOT_FOUND"):
        log.other(new_id).get()


def test_a_file_cut_short_is_refused(plain: Calls) -> None:
    data = plain.export()
    new_id = fresh_id()
    with refused("INVALID_FIELD"):
        imported(plain.stub, data[: len(data) - 20], new_id)
    with refused("SESSION_NOT_FOUND"):
        plain.other(new_id).get()


def test_an_import_that_breaks_off_leaves_nothing(plain: Calls, served: Any) -> None:
    data, new_id = plain.export(), fresh_id()
    head = service_pb2.ImportHeader(session_id=new_id)
    abandon(
        served.address,
        "ImportSession",
        [
            service_pb2.ImportSessionRequest(header=head).SerializeToString(),
            service_pb2.ImportSessionRequest(data=data[:-5]).SerializeToString(),
        ],
    )
    with refused("SESSION_NOT_FOUND"):
        plain.other(new_id).get()
    imported(plain.stub, data, new_id)
    assert plain.other(new_id).texts() == ["a", "b", "c"]


def test_the_header_comes_first(plain: Calls) -> None:
    data = service_pb2.ImportSessionRequest(data=plain.export())
    head = service_pb2.ImportSessionRequest(header=service_pb2.ImportHeader(session_id=fresh_id()))
    for elements in ([], [data], [data, head], [head, head], [service_pb2.ImportSessionRequest()]):
        with refused("INVALID_FIELD"):
            plain.stub.ImportSession(iter(elements))


def test_a_retry_gives_the_first_answer(plain: Calls) -> None:
    data, new_id, request_id = plain.export(), fresh_id(), fresh_id("r")
    first = imported(plain.stub, data, new_id, request_id=request_id)
    again = imported(plain.stub, data, new_id, request_id=request_id)
    assert (again.count, again.next_seq) == (first.count, first.next_seq)
    with refused("REQUEST_ID_REUSED"):
        imported(plain.stub, Calls.create(plain.stub).export(), new_id, request_id=request_id)


def test_a_copys_requests_are_its_own(plain: Calls) -> None:
    plain.append(user("d"), request_id="r")
    copy = copy_of(plain)
    assert copy.append(user("d"), request_id="r").first_seq in {3, 4}
    assert [each.request_id for each in copy.events()][3] == "r"


def test_fields_of_a_newer_release_survive(log: Calls) -> None:
    newer = event_pb2.EventBody.FromString(user("x").body.SerializeToString() + b"\xfa\x3e\x02hi")
    log.append(event_pb2.NewEvent(body=newer))
    assert copy_of(log).events()[0].body.SerializeToString() == newer.SerializeToString()
