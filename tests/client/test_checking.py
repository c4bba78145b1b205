"""Checks send only what is new since the last list that was equal to the log's."""

from __future__ import annotations

from typing import Any

import pytest
from foldlog import (
    FoldedMessage,
    Header,
    Message,
    SendLimits,
    ViolationKind,
    assistant,
    errors,
    system,
    user,
)
from foldlog.client.operations import checking, reading
from foldlog.codec import message_to_proto
from foldlog.converters import Converted
from foldlog.core.digest import prefix_digest
from foldlog.v1 import check_pb2
from foldlog.v1 import service_pb2 as pb

from tests.client.driving import END, Driven, session

OLD = [user("a"), assistant("b")]
NEW = [user("c"), assistant("d")]
LEAD = system("be good")


def good(messages: list[Message], next_seq: int = 9) -> pb.CheckRequestResponse:
    """Return the answer to a check that found these messages equal to the log's."""
    count, digest, leading_system = prefix_digest(messages)
    return pb.CheckRequestResponse(
        checked=True,
        next_seq=next_seq,
        digest=check_pb2.PrefixDigest(count=count, digest=digest, leading_system=leading_system),
    )


def bad() -> pb.CheckRequestResponse:
    """Return the answer to a check that found a violation."""
    answer = good(OLD)
    answer.violation.kind = check_pb2.VIOLATION_KIND_ORDER
    return answer


FULL_LIST_NEEDED = pb.CheckRequestResponse(need_full_list=True, next_seq=9)


def known(messages: list[Message]) -> Any:
    """Return a session that knows messages from a check that found nothing."""
    mine = session()
    Driven(checking.check(mine, messages), [good(messages)])
    return mine


def texts(asked: pb.CheckRequestRequest) -> list[str]:
    """Return the texts of the messages that were sent."""
    return [message.text for message in asked.messages]


def test_the_first_check_sends_the_full_list() -> None:
    driven = Driven(checking.check(session(), OLD), [good(OLD)])
    assert texts(driven.asked[0]) == ["a", "b"]
    assert not driven.asked[0].HasField("prefix")
    assert driven.result.ok


def test_the_next_check_sends_a_digest_and_what_is_new() -> None:
    driven = Driven(checking.check(known(OLD), OLD + NEW), [good(OLD + NEW)])
    assert texts(driven.asked[0]) == ["c", "d"]
    assert driven.asked[0].prefix.count == 2
    assert driven.asked[0].prefix.digest == prefix_digest(OLD)[1]


def test_each_check_goes_on_from_the_one_before() -> None:
    mine = known(OLD)
    Driven(checking.check(mine, OLD + NEW), [good(OLD + NEW)])
    driven = Driven(checking.check(mine, [*OLD, *NEW, user("e")]), [good([*OLD, *NEW, user("e")])])
    assert texts(driven.asked[0]) == ["e"]


def test_a_list_that_is_the_known_one_sends_no_messages() -> None:
    driven = Driven(checking.check(known(OLD), OLD), [good(OLD)])
    assert texts(driven.asked[0]) == []
    assert driven.asked[0].prefix.count == 2


def test_equal_messages_that_are_other_objects_are_known() -> None:
    driven = Driven(checking.check(known(OLD), [user("a"), assistant("b"), *NEW]), [good(OLD)])
    assert texts(driven.asked[0]) == ["c", "d"]


@pytest.mark.parametrize(
    "given", [[user("A"), *OLD[1:], *NEW], OLD[:1], []], ids=["changed", "shorter", "empty"]
)
def test_a_list_that_does_not_begin_with_the_known_one_is_sent_in_full(
    given: list[Message],
) -> None:
    driven = Driven(checking.check(known(OLD), given), [bad()])
    assert len(driven.asked[0].messages) == len(given)
    assert not driven.asked[0].HasField("prefix")


@pytest.mark.parametrize("before", [[], [LEAD]], ids=["without-before", "with-before"])
@pytest.mark.parametrize("now", [[], [system("other")]], ids=["without-now", "with-now"])
def test_a_leading_system_message_is_a_flag(before: list[Message], now: list[Message]) -> None:
    driven = Driven(checking.check(known(before + OLD), now + OLD + NEW), [good(now + OLD + NEW)])
    assert texts(driven.asked[0]) == ["c", "d"]
    assert driven.asked[0].prefix.leading_system == bool(now)
    assert driven.asked[0].prefix.count == 2


def test_a_digest_that_does_not_match_is_followed_by_the_full_list() -> None:
    mine = known(OLD)
    driven = Driven(checking.check(mine, OLD + NEW), [FULL_LIST_NEEDED, good(OLD + NEW)])
    assert [len(asked.messages) for asked in driven.asked] == [2, 4]
    assert not driven.asked[1].HasField("prefix")
    assert driven.result.ok


def test_a_violation_is_not_remembered() -> None:
    mine = known(OLD)
    driven = Driven(checking.check(mine, OLD + NEW), [bad()])
    assert driven.result.violation.kind is ViolationKind.ORDER
    assert not driven.result.ok
    assert texts(Driven(checking.check(mine, OLD + NEW), [bad()]).asked[0]) == ["c", "d"]


def test_messages_are_remembered_for_the_next_check() -> None:
    folded = [
        pb.FoldedMessage(seq=seq, message=message_to_proto(message))
        for seq, message in enumerate(OLD)
    ]
    piece = pb.GetMessagesResponse(messages=folded, next_seq=2, count=2, digest=good(OLD).digest)
    mine = session()
    found = Driven(reading.messages(mine), [piece, END]).result
    driven = Driven(checking.check(mine, [*found, user("c")]), [good(OLD)])
    assert texts(driven.asked[0]) == ["c"]


def test_a_digest_over_another_number_of_messages_is_not_remembered() -> None:
    mine = session()
    Driven(checking.check(mine, OLD), [good(OLD[:1])])
    assert mine.checked is None


@pytest.mark.parametrize(
    "option",
    ["strict_system", "compare_reasoning", "report_unanswered_calls", "byte_exact", "independent"],
)
def test_an_option_sends_the_full_list(option: str) -> None:
    chosen: Any = {option: True}
    call = checking.check(known(OLD), OLD + NEW, **chosen)
    (asked,) = Driven(call, [good(OLD + NEW)]).asked
    assert len(asked.messages) == 4
    assert getattr(asked.options, option)


def test_a_check_at_a_seq_is_not_remembered() -> None:
    mine = session()
    Driven(checking.check(mine, OLD, at_seq=3), [good(OLD)])
    assert (mine.checked, mine.next_seq) == (None, None)


def test_what_is_known_is_said_only_while_nobody_else_may_write() -> None:
    mine = session()
    mine.saw(5)
    assert not Driven(checking.check(mine, OLD), [good(OLD)]).asked[0].HasField("min_next_seq")
    mine.writer_epoch = 1
    assert Driven(checking.check(mine, OLD), [good(OLD)]).asked[0].min_next_seq == 9
    call = checking.check(mine, OLD, min_next_seq=2)
    assert Driven(call, [good(OLD)]).asked[0].min_next_seq == 2


@pytest.mark.parametrize(
    ("mode", "number"),
    [(None, 0), ("off", 1), ("WARN", 2), ("strict", 3), (checking.CheckMode.STRICT, 3)],
    ids=str,
)
def test_a_mode_is_a_name_or_an_enum(mode: Any, number: int) -> None:
    call = checking.check(session(), OLD, mode=mode)
    assert Driven(call, [good(OLD)]).asked[0].mode == number


def test_a_mode_that_does_not_exist_is_refused() -> None:
    with pytest.raises(errors.InvalidFieldError):
        Driven(checking.check(session(), OLD, mode="loud"), [])


def test_a_converters_result_is_checked_with_its_header() -> None:
    converted = Converted(tuple(OLD), header=Header(model="m"))
    assert Driven(checking.check(session(), converted), [good(OLD)]).asked[0].header.model == "m"
    call = checking.check(session(), converted, Header(model="n"))
    assert Driven(call, [good(OLD)]).asked[0].header.model == "n"
    bare = checking.check(session(), Converted(tuple(OLD)))
    assert not Driven(bare, [good(OLD)]).asked[0].HasField("header")


def test_what_is_no_message_is_refused_by_its_index() -> None:
    given: Any = [user("a"), FoldedMessage(1, 1, user("b"), 0), {"role": "user"}]
    with pytest.raises(errors.InvalidFieldError) as refused:
        Driven(checking.check(session(), given), [])
    assert set(refused.value.fields) == {"messages[2]"}


def test_a_list_over_what_the_service_receives_is_refused_before_it_is_sent() -> None:
    mine = session(limits=SendLimits(request_bytes=100))
    with pytest.raises(errors.TooLargeError) as refused:
        Driven(checking.check(mine, [user("x" * 100)]), [])
    assert (refused.value.field, refused.value.limit) == ("messages", 100)


def test_an_off_answer_is_neither_ok_nor_a_violation() -> None:
    off = pb.CheckRequestResponse(checked=False, next_seq=9)
    result = Driven(checking.check(session(), OLD, mode="off"), [off]).result
    assert (result.checked, result.ok, result.violation) == (False, False, None)
