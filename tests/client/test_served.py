"""The blocking client against a real server: each call, as a worker uses it."""

from __future__ import annotations

import io
import itertools
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from foldlog import (
    CaughtUp,
    Client,
    Custom,
    Deleted,
    Event,
    EventState,
    EventType,
    ForkPoint,
    Header,
    HeaderSnapshot,
    Message,
    Session,
    TextPart,
    ToolCall,
    Usage,
    ViolationKind,
    assistant,
    at,
    custom,
    errors,
    grouped,
    placed,
    replacing,
    request_header,
    system,
    tool_call,
    tool_result,
    turn_end,
    turn_start,
    user,
)
from foldlog.client.bodies import Body

CALL = assistant("looking", tool_calls=[ToolCall("c1", "find", '{"q": 1.0}')])
TURN = [user("hi"), CALL, tool_result("found", tool_call_id="c1"), assistant("done")]
HEADER = Header(provider="openai", model="m", system_prompt="be good", tools_json=("{}",))


def said(session: Session, at_seq: int | None = None) -> list[Message]:
    """Return the folded messages without what stands around them."""
    return [folded.message for folded in session.messages(at_seq)]


def test_what_was_appended_is_what_the_model_sees(session: Session) -> None:
    appended = session.append(turn_start(1), *TURN, turn_end(1, usage=Usage(input_tokens=7)))
    assert (appended.first_seq, appended.next_seq) == (0, 6)
    assert said(session) == TURN
    assert session.next_seq == 6


def test_each_kind_of_event_comes_back_as_it_was(session: Session) -> None:
    bodies: list[Body] = [
        turn_start(1, reason="asked"),
        user([TextPart("a"), TextPart("b")], name="ann"),
        request_header(HEADER),
        tool_call("c1", name="find", arguments="{}", idempotency_key="k"),
        custom("note", b"\x00\xff", keys=["k1", "k2"]),
        turn_end(1, reason="completed", usage=Usage(1, 2, 3, 4, 5)),
    ]
    session.append(*bodies)
    events = list(session.events())
    assert [event.body for event in events] == bodies
    assert [event.seq for event in events] == list(range(6))
    assert events[2].type == EventType.REQUEST_HEADER
    assert {event.state for event in events} == {EventState.LIVE}


def test_a_group_and_a_time_come_back(session: Session) -> None:
    time_ns = 1_700_000_000_123_456_789
    session.append(at(grouped(user("a"), "g"), time_ns))
    (folded,) = session.messages()
    (event,) = session.events()
    assert (folded.group, folded.time_ns) == (event.group, event.time_ns) == ("g", time_ns)
    assert folded.time == datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC)


def test_a_replace_shadows_and_says_what(session: Session) -> None:
    session.append(*TURN)
    answer = session.append(replacing(user("summary"), first_seq=0, last_seq=3))
    (replaced,) = answer.replaces
    assert (replaced.seq, replaced.position, replaced.shadowed_seqs) == (4, 0, (0, 1, 2, 3))
    assert said(session) == [user("summary")]
    assert said(session, at_seq=3) == TURN
    states = [event.state for event in session.events()]
    assert states == [EventState.SHADOWED] * 4 + [EventState.LIVE]


def test_a_right_request_is_ok_and_a_wrong_one_says_what_is_wrong(session: Session) -> None:
    session.append(request_header(HEADER), *TURN)
    assert session.check(TURN, HEADER).ok
    assert session.check([system("mine"), *TURN]).ok
    violation = session.check(TURN[:3]).violation
    assert violation is not None
    assert (violation.kind, violation.index) == (ViolationKind.MISSING_MESSAGE, 3)
    with pytest.raises(errors.RequestNotDerivableError) as strict:
        session.check([*TURN, user("more")], mode="strict")
    assert strict.value.violation.kind is ViolationKind.EXTRA_MESSAGE  # type: ignore[attr-defined]


def test_an_incremental_check_agrees_with_a_full_one(session: Session, client: Client) -> None:
    messages: list[Message] = []
    for turn in range(4):
        new = [user(f"q{turn}"), assistant(f"a{turn}")]
        session.append(*new)
        messages += new
        assert session.check(messages).ok
    assert session.checked is not None
    assert len(session.checked.messages) == 8
    for wrong in ([*messages, user("x")], messages[:-1], [user("x"), *messages[1:]]):
        other = client.session(session.session_id)
        assert session.check(wrong) == other.check(wrong)
    assert session.check(messages).ok


def test_a_check_knows_what_messages_returned(session: Session) -> None:
    session.append(*TURN)
    folded = session.messages()
    assert session.checked is not None
    assert session.check([system("mine"), *folded]).ok


def test_a_check_after_a_compaction_needs_no_help(session: Session) -> None:
    session.append(*TURN)
    assert session.check(TURN).ok
    session.append(replacing(user("summary"), first_seq=0, last_seq=3), user("go on"))
    assert not session.check([*TURN, user("go on")]).ok
    assert session.check([user("summary"), user("go on")]).ok


def test_a_long_append_is_one_call(session: Session) -> None:
    appended = session.append(*(user(str(i)) for i in range(2_345)))
    assert (appended.first_seq, appended.next_seq) == (0, 2_345)
    assert [m.content for m in said(session)] == [str(i) for i in range(2_345)]


def test_a_fold_over_what_one_answer_may_hold_is_read_whole(session: Session) -> None:
    texts = [letter * 2_000_000 for letter in "abcd"]
    session.append(*map(user, texts))
    assert [m.content for m in said(session)] == texts
    assert session.check([user(text) for text in texts]).ok


def test_a_fork_before_a_compaction_has_the_originals(session: Session) -> None:
    session.append(*TURN)
    session.append(replacing(user("summary"), first_seq=0, last_seq=3))
    child = session.fork(3, labels={"kind": "retry"})
    assert said(child) == TURN
    assert (child.next_seq, child.lineage()) == (4, [ForkPoint(session.session_id, 3)])
    child.append(user("other way"))
    difference = session.diff(child)
    assert (difference.common_count, len(difference.left), len(difference.right)) == (0, 1, 5)
    assert difference.shared_seq == 3


def test_a_cut_says_what_is_open(session: Session) -> None:
    session.append(turn_start(), user("hi"), CALL)
    child = session.fork()
    assert child.cut is not None
    assert (child.cut.open_turn_seq, child.cut.unanswered_call_ids) == (0, ("c1",))
    with pytest.raises(errors.OpenTurnError) as refused:
        session.fork(require_closed_turn=True)
    assert refused.value.turn_seq == 0


def test_a_rewind_undoes_and_a_snapshot_drops(session: Session) -> None:
    session.append(user("a"), user("b"))
    rewound = session.rewind(0)
    assert (rewound.seq, rewound.next_seq, said(session)) == (2, 3, [user("a")])
    assert session.snapshot().dropped_count == 1
    dropped = list(session.events())[1]
    assert (dropped.dropped, dropped.body) == (True, None)
    assert session.verify().intact


def test_only_the_current_writer_writes(session: Session, client: Client) -> None:
    epoch = session.open_writer("w1")
    session.append(user("a"))
    other = client.session(session.session_id)
    with pytest.raises(errors.WriterEpochRequiredError) as required:
        other.append(user("b"))
    assert required.value.current_epoch == epoch
    other.open_writer("w2")
    with pytest.raises(errors.StaleWriterError):
        session.append(user("c"))
    other.close_writer()
    assert other.writer_epoch is None
    assert other.append(user("d")).first_seq == 1


def test_a_lost_race_has_both_numbers(session: Session) -> None:
    session.append(user("a"))
    with pytest.raises(errors.SeqConflictError) as lost:
        session.append(user("b"), expected_next_seq=0)
    assert (lost.value.expected_next_seq, lost.value.next_seq) == (0, 1)


def test_sessions_are_found_by_label_parent_and_key(client: Client) -> None:
    mark = uuid4().hex
    parent = client.create(labels={"mark": mark}, metadata_json='{"a":1.0}')
    parent.append(custom("ticket", keys=[mark]))
    child = parent.fork()
    (found,) = client.list(labels={"mark": mark})
    assert (found.session_id, found.metadata_json) == (parent.session_id, '{"a":1.0}')
    assert [i.session_id for i in client.list(parent=parent.session_id)] == [child.session_id]
    assert parent.session_id in {i.session_id for i in client.list(custom_key=mark)}
    assert list(client.list(custom_key=mark, custom_kind="other")) == []
    before = client.get(parent.session_id).create_time
    assert list(client.list(labels={"mark": mark}, created_before=before)) == []


def test_a_listing_goes_through_its_pages(client: Client) -> None:
    mark = uuid4().hex
    made = [client.create(labels={"mark": mark}).session_id for _ in range(5)]
    listed = [info.session_id for info in client.list(labels={"mark": mark}, page_size=2)]
    assert sorted(listed) == sorted(made)


def test_labels_and_metadata_change(session: Session) -> None:
    session.update(set_labels={"a": "1", "b": "2"}, metadata_json="{}")
    info = session.update(remove_labels=["a"])
    assert (info.labels, info.metadata_json) == ({"b": "2"}, "{}")
    assert session.update(metadata_json="").metadata_json == ""
    assert session.info().labels == {"b": "2"}


def test_a_deleted_session_is_gone_and_its_id_too(client: Client, session: Session) -> None:
    session.delete()
    session.delete()
    with pytest.raises(errors.SessionDeletedError):
        session.messages()
    with pytest.raises(errors.SessionDeletedError):
        client.create(session.session_id)


def test_a_session_that_does_not_exist_shows_at_the_first_call(client: Client) -> None:
    missing = client.session("no such session")
    with pytest.raises(errors.SessionNotFoundError) as refused:
        missing.messages()
    assert refused.value.session_id == "no such session"


def test_headers_are_read_where_they_were_in_force(session: Session) -> None:
    with pytest.raises(errors.HeaderMissingError):
        session.header()
    session.append(request_header(HEADER), request_header(Header(model="n")))
    assert session.header() == Header(model="n")
    assert session.header(at_seq=0) == HEADER


def test_a_restore_keeps_seqs_and_bytes(session: Session, client: Client) -> None:
    session.append(user("a"), custom("k", b"x"), user("c"))
    stored = list(session.events())
    copy = client.create()
    restored = copy.restore([stored[0], stored[2], placed(user("late"), 9)])
    assert (restored.count, restored.next_seq) == (3, 10)
    events = list(copy.events())
    assert [event.seq for event in events] == [0, 2, 9]
    assert events[1].encoded_body == stored[2].encoded_body
    assert events[1].time_ns == stored[2].time_ns
    with pytest.raises(errors.SeqBehindHeadError) as behind:
        copy.restore(iter(stored))
    assert behind.value.next_seq == 10


def test_a_restore_that_does_not_encode_restores_nothing(session: Session) -> None:
    events = [placed(user(str(i)), i) for i in range(600)]
    with pytest.raises(errors.InvalidFieldError) as refused:
        session.restore([*events, placed(user("\ud800"), 600)])
    assert set(refused.value.fields) == {"events[600].event.body.content"}
    assert session.info().next_seq == 0


def test_what_an_iterator_of_a_restore_raises_is_raised(session: Session) -> None:
    def events() -> itertools.chain[object]:
        raise KeyError("mine")

    broken = (events() for _ in range(1))
    with pytest.raises(KeyError):
        session.restore(broken)  # type: ignore[arg-type]
    assert session.append(user("a")).first_seq == 0


def test_a_seed_appends_a_list(session: Session) -> None:
    session.seed([system("s"), at(user("a"), 5), CALL, tool_result("r", tool_call_id="c1")])
    folded = session.messages()
    assert [f.message.role for f in folded] == [1, 2, 3, 4]
    assert folded[1].time_ns == 5


def test_a_session_goes_through_a_file_and_back(session: Session, client: Client) -> None:
    session.append(*TURN, request_header(HEADER))
    first, second = io.BytesIO(), io.BytesIO()
    assert session.export(first) == len(first.getvalue())
    first.seek(0)
    copy = client.import_session(first, f"{session.session_id}-copy")
    assert (said(copy), copy.header(), copy.next_seq) == (TURN, HEADER, 5)
    copy.export(second)
    renamed = second.getvalue().replace(copy.session_id.encode(), session.session_id.encode())
    assert renamed == first.getvalue()


def test_a_watch_catches_up_and_goes_on(session: Session) -> None:
    session.append(user("a"))
    with session.watch() as watch:
        first, caught_up = next(watch), next(watch)
        assert isinstance(first, Event)
        assert (first.seq, first.body, caught_up) == (0, user("a"), CaughtUp(1))
        session.append(user("b"))
        second = next(watch)
        assert isinstance(second, Event)
        assert second.body == user("b")
        session.delete()
        assert list(watch) == [Deleted()]


def test_the_feed_follows_every_session(client: Client) -> None:
    with client.watch_all(from_now=True) as feed:
        cursor = next(feed).cursor
        session = client.create()
        session.append(user("a"))
        mine = (item for item in feed if item.session_id == session.session_id)
        fact, event = next(mine), next(mine)
    assert isinstance(event.item, Event)
    assert event.item.body == user("a")
    with client.watch_all(cursor) as feed:
        mine = (item for item in feed if item.session_id == session.session_id)
        assert next(mine) == fact


def test_validating_writes_nothing(session: Session) -> None:
    assert session.append(user("a"), validate_only=True).first_seq == 0
    assert session.info().next_seq == 0


def test_try_append_goes_on(session: Session, client: Client) -> None:
    assert session.try_append(user("a")) is not None
    assert session.try_append(user("b"), expected_next_seq=0) is None
    assert client.session("missing").try_append(user("c")) is None
    assert (session.failed_appends, client.failed_appends) == (1, 2)


def test_bodies_are_what_the_sent_values_were(session: Session) -> None:
    session.append(request_header(HEADER), custom("k"))
    assert [e.body for e in session.events()] == [HeaderSnapshot(HEADER), Custom("k")]


def test_a_closed_client_says_so(client: Client) -> None:
    session = client.create()
    client.close()
    with pytest.raises(errors.ClientClosedError):
        session.append(user("a"))
    assert session.try_append(user("a")) is None
