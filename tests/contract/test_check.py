"""The check: kinds, options, modes, and prefix digests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from foldlog.v1 import check_pb2, event_pb2, message_pb2

from tests.contract.attachments import put
from tests.contract.calls import Calls
from tests.contract.digests import prefix_digest
from tests.contract.refusal import refused
from tests.contract.said import (
    assistant,
    assistant_message,
    batches,
    event,
    header,
    replacing,
    result,
    system,
    system_message,
    tool_message,
    user,
    user_message,
)
from tests.served import Served

MISSING = check_pb2.VIOLATION_KIND_MISSING_MESSAGE
EXTRA = check_pb2.VIOLATION_KIND_EXTRA_MESSAGE
ORDER = check_pb2.VIOLATION_KIND_ORDER
ORPHAN = check_pb2.VIOLATION_KIND_ORPHANED_TOOL_RESULT
HEADER = check_pb2.VIOLATION_KIND_HEADER_MISMATCH
UNANSWERED = check_pb2.VIOLATION_KIND_UNANSWERED_TOOL_CALL
BYTES = check_pb2.VIOLATION_KIND_BYTES_DIFFER


@pytest.fixture
def talk(log: Calls) -> Calls:
    """A session of a prompt, a question, a call, its result and an answer."""
    log.append(
        *(system("prompt"), user("q"), assistant("", "c1"), result("r", "c1"), assistant("a"))
    )
    return log


def opaque(text: str) -> message_pb2.Message:
    """Return a user message of one opaque part."""
    part = message_pb2.Part(opaque=message_pb2.OpaquePart(kind="k", json=text))
    return message_pb2.Message(role=message_pb2.ROLE_USER, parts=message_pb2.PartList(parts=[part]))


def test_the_fold_itself_is_no_violation(talk: Calls) -> None:
    answer = talk.check(*talk.messages())
    assert answer.checked
    assert not answer.HasField("violation")
    assert not answer.need_full_list
    assert answer.next_seq == 5


def test_the_answers_digest_is_that_of_the_fold(talk: Calls) -> None:
    digest = prefix_digest(talk.messages())
    assert talk.check(*talk.messages()).digest == digest
    assert talk.fold_pieces()[-1].digest == digest
    assert (digest.count, digest.leading_system) == (4, True)


def test_a_missing_message_is_sketched(talk: Calls) -> None:
    request = talk.messages()
    del request[1]
    told = talk.violation(*request)
    assert (told.kind, told.index, told.request_length, told.log_length) == (MISSING, 1, 4, 5)
    assert list(told.extra) == []
    assert list(told.missing) == [check_pb2.Sketch(role=message_pb2.ROLE_USER, preview="q")]
    assert told.log_seq == 1


def test_a_message_past_the_log_has_no_log_seq(talk: Calls) -> None:
    told = talk.violation(*talk.messages(), user_message("ghost"))
    assert (told.kind, told.index) == (EXTRA, 5)
    assert not told.HasField("log_seq")


def test_an_order_has_no_sketches(log: Calls) -> None:
    log.append(user("a"), user("b"))
    told = log.violation(user_message("b"), user_message("a"))
    assert (told.kind, told.index, list(told.extra), list(told.missing)) == (ORDER, 0, [], [])


def test_sketches_are_cut_never_whole(log: Calls) -> None:
    request = [
        user_message("🧩" * 500),
        assistant_message("", "a", "b", name="n"),
        tool_message("x", "a"),
        *(user_message(str(i)) for i in range(5)),
    ]
    told = log.violation(*request)
    assert len(told.extra) == 5
    assert told.extra[0].preview == "🧩" * 120
    assert (told.extra[1].preview, told.extra[1].tool_calls, told.extra[1].name) == ("", 2, "n")
    assert told.extra[2].tool_call_id == "a"


def test_system_messages_are_equal_whatever_they_say(talk: Calls) -> None:
    request = talk.messages()
    request[0] = system_message("other", name="n")
    assert not talk.check(*request).HasField("violation")


@pytest.mark.parametrize(
    ("logged", "sent"),
    [
        (user_message("a"), message_pb2.Message(role=message_pb2.ROLE_USER)),
        (user_message(""), message_pb2.Message(role=message_pb2.ROLE_USER)),
        (user_message("a"), assistant_message("a")),
        (user_message("a"), user_message("a", name="")),
        (user_message("a"), user_message("a", tool_call_id="")),
        (user_message("é"), user_message("e\u0301")),
        (
            user_message("a"),
            message_pb2.Message(
                role=message_pb2.ROLE_USER,
                parts=message_pb2.PartList(parts=[message_pb2.Part(text="a")]),
            ),
        ),
        (opaque("1"), opaque("1.0")),
        (opaque("1.0"), opaque("1e0")),
        (opaque('{"a":[1,2]}'), opaque('{"a":[2,1]}')),
        (opaque("9007199254740993"), opaque("9007199254740992")),
    ],
    ids=[
        *("no text", "no content", "role", "name", "id", "normal form", "one part"),
        *("1 and 1.0", "1.0 and 1e0", "list order", "big integers"),
    ],
)
def test_what_differs_is_missing_and_extra(
    log: Calls, logged: message_pb2.Message, sent: message_pb2.Message
) -> None:
    log.append(event(logged))
    told = log.violation(sent)
    assert (told.kind, len(told.extra), len(told.missing)) == (MISSING, 1, 1)


@pytest.mark.parametrize(
    ("logged", "sent"),
    [
        (user_message("a", metadata_json="1"), user_message("a", metadata_json="2")),
        (user_message("a", reasoning="x"), user_message("a")),
        (opaque('{"b":1,"a":"\\u0041"}'), opaque('{ "a" : "A", "b" : 1 }')),
        (opaque('"\\ud83e\\udde9"'), opaque('"🧩"')),
    ],
    ids=["metadata", "reasoning", "key order and escapes", "surrogate pair"],
)
def test_what_is_not_compared_makes_no_difference(
    log: Calls, logged: message_pb2.Message, sent: message_pb2.Message
) -> None:
    log.append(event(logged))
    assert not log.check(sent).HasField("violation")


def test_an_orphan_is_judged_on_the_request(log: Calls) -> None:
    log.append(user("q"), assistant("", "c"), result("r", "c"), replacing(user("S"), 1, 1))
    told = log.violation(*log.messages())
    assert (told.kind, told.tool_call_id) == (ORPHAN, "c")
    assert told.index == 2
    assert told.log_seq == 2


def test_a_repeated_id_is_no_orphan(log: Calls) -> None:
    for _ in range(2):
        log.append(assistant("", "c"), result("r", "c"))
    assert not log.check(*log.messages()).HasField("violation")


def test_odd_input_is_a_violation_and_never_an_error(log: Calls) -> None:
    log.append(user("a"))
    odd = [
        message_pb2.Message(),
        message_pb2.Message.FromString(b"\x08\x63"),
        message_pb2.Message(
            role=message_pb2.ROLE_USER, parts=message_pb2.PartList(parts=[message_pb2.Part()])
        ),
        opaque("{"),
        message_pb2.Message(role=message_pb2.ROLE_TOOL),
        user_message("a", metadata_json="{"),
    ]
    for each in odd[:-1]:
        assert log.violation(each).kind == MISSING
    assert log.violation(odd[1]).extra[0].role == 99
    assert not log.check(odd[-1]).HasField("violation")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000 + "]" * 100_000,
        "9" * 100_000,
        "{",
        "",
        '"\\ud800"',
        '{"a":1,"a":1}',
        "\ufeff1",
    ],
    ids=["deep", "many digits", "broken", "empty", "half a character", "duplicate key", "mark"],
)
def test_json_of_any_kind_can_be_checked(log: Calls, text: str) -> None:
    log.append(event(opaque("[1]")), header(parameters_json='{"a":1}'))
    every = options(
        strict_system=True,
        compare_reasoning=True,
        report_unanswered_calls=True,
        byte_exact=True,
        independent=True,
    )
    for chosen in (options(), every):
        assert log.violation(opaque(text), options=chosen).kind == MISSING
        sent = event_pb2.RequestHeader(parameters_json=text, tools_json=[text])
        told = log.violation(opaque("[1]"), header=sent, options=chosen)
        assert told.kind == HEADER


def test_at_seq_takes_fold_and_header_there(talk: Calls) -> None:
    talk.append(header(model="m"))
    request = talk.messages()
    assert not talk.check(*request[:3], at_seq=2).HasField("violation")
    assert talk.violation(*request, at_seq=2).kind == EXTRA
    assert talk.check(*request[:3], at_seq=2).next_seq == 3
    assert talk.check(at_seq=-1).next_seq == 0
    sent = event_pb2.RequestHeader(model="m")
    assert not talk.check(*request, header=sent).HasField("violation")
    assert talk.violation(*request, header=sent, at_seq=4).kind == HEADER
    with refused("SEQ_BEYOND_HEAD"):
        talk.check(at_seq=6)


def test_a_header_that_differs_names_the_fields(log: Calls) -> None:
    log.append(
        header(
            provider="p",
            model="m",
            parameters_json='{"a":1,"b":2}',
            system_prompt="s",
            tools_json=['{"x":1}', "{}"],
            reasoning_effort="low",
        )
    )
    same = event_pb2.RequestHeader(
        provider="p",
        model="m",
        parameters_json='{ "b":2, "a":1 }',
        system_prompt="s",
        tools_json=[' {"x":1} ', "{}"],
        reasoning_effort="low",
        reason=event_pb2.HEADER_REASON_CHANGE,
    )
    assert not log.check(header=same).HasField("violation")
    other = event_pb2.RequestHeader(
        provider="q", parameters_json='{"a":1.0,"b":2}', tools_json=["{}", '{"x":1}']
    )
    told = log.violation(header=other)
    assert told.kind == HEADER
    assert sorted(told.header_fields) == [
        *("model", "parameters_json", "provider", "reasoning_effort", "system_prompt"),
        "tools_json",
    ]


def test_messages_are_judged_before_the_header(talk: Calls) -> None:
    told = talk.violation(header=event_pb2.RequestHeader(model="x"))
    assert told.kind == MISSING


def test_a_header_against_a_log_without_one_differs(log: Calls) -> None:
    assert log.violation(header=event_pb2.RequestHeader(model="x")).kind == HEADER
    assert not log.check().HasField("violation")


def options(**fields: bool) -> check_pb2.CheckOptions:
    """Return options."""
    return check_pb2.CheckOptions(**fields)


def test_strict_system_compares_what_system_messages_say(talk: Calls) -> None:
    request = talk.messages()
    assert not talk.check(*request, options=options(strict_system=True)).HasField("violation")
    request[0] = system_message("other")
    assert talk.violation(*request, options=options(strict_system=True)).kind == MISSING


def test_strict_system_holds_an_overlay_to_the_header(log: Calls) -> None:
    log.append(header(system_prompt="prompt"), user("a"))
    strict = options(strict_system=True)
    good = [system_message("prompt"), user_message("a")]
    bad = [system_message("forged"), user_message("a")]
    assert not log.check(*good, options=strict).HasField("violation")
    assert not log.check(*bad).HasField("violation")
    told = log.violation(*bad, options=strict)
    assert told.kind in {EXTRA, HEADER}


def test_compare_reasoning(log: Calls) -> None:
    log.append(event(assistant_message("a", reasoning="r")))
    with_reasoning = options(compare_reasoning=True)
    assert log.violation(assistant_message("a"), options=with_reasoning).kind == MISSING
    same = assistant_message("a", reasoning="r")
    assert not log.check(same, options=with_reasoning).HasField("violation")


def test_report_unanswered_calls(log: Calls) -> None:
    log.append(assistant("", "x", "y"), result("r", "x"))
    asked = options(report_unanswered_calls=True)
    assert not log.check(*log.messages()).HasField("violation")
    told = log.violation(*log.messages(), options=asked)
    assert (told.kind, told.tool_call_id) == (UNANSWERED, "y")
    log.append(result("r", "y"))
    assert not log.check(*log.messages(), options=asked).HasField("violation")


def test_byte_exact_tells_of_the_same_json_in_other_bytes(log: Calls) -> None:
    log.append(event(opaque('{"a":1}')))
    other = opaque('{ "a":1 }')
    assert not log.check(other).HasField("violation")
    assert log.violation(other, options=options(byte_exact=True)).kind == BYTES
    assert not log.check(opaque('{"a":1}'), options=options(byte_exact=True)).HasField("violation")


def test_byte_exact_covers_the_header(log: Calls) -> None:
    log.append(header(parameters_json='{"a":1}'))
    sent = event_pb2.RequestHeader(parameters_json='{ "a":1}')
    assert not log.check(header=sent).HasField("violation")
    assert log.violation(header=sent, options=options(byte_exact=True)).kind == BYTES


def test_an_independent_check_agrees(talk: Calls) -> None:
    talk.append(replacing(user("S"), 1, 3))
    talk.rewind(4)
    request = talk.messages()
    independent = options(independent=True)
    assert not talk.check(*request, options=independent).HasField("violation")
    assert talk.violation(*request[:-1], options=independent).kind == MISSING
    assert talk.check(*request, options=independent).digest == talk.check(*request).digest
    assert not talk.check(*request[:2], at_seq=1, options=independent).HasField("violation")


def test_a_violation_in_strict_mode_is_a_refusal_that_carries_it(talk: Calls) -> None:
    warned = talk.violation(user_message("x"), mode=check_pb2.CHECK_MODE_WARN)
    with refused("REQUEST_NOT_DERIVABLE") as told:
        talk.check(user_message("x"), mode=check_pb2.CHECK_MODE_STRICT)
    assert told.violation == warned
    assert talk.check(*talk.messages(), mode=check_pb2.CHECK_MODE_STRICT).checked


def test_off_answers_before_any_work(talk: Calls) -> None:
    answer = talk.check(user_message("x"), mode=check_pb2.CHECK_MODE_OFF)
    assert not answer.checked
    assert not answer.HasField("violation")


@pytest.mark.parametrize(
    ("setting", "finds"),
    [("off", "nothing"), ("warn", "violation"), ("strict", "refusal"), ("loud", "violation")],
)
def test_the_servers_default_mode_is_a_setting(
    serve: Callable[..., Served], setting: str, finds: str
) -> None:
    log = Calls.create(serve(FOLDLOG_CHECK_MODE=setting).stub)
    if finds == "refusal":
        with refused("REQUEST_NOT_DERIVABLE"):
            log.check(user_message("x"))
        return
    answer = log.check(user_message("x"))
    assert answer.HasField("violation") == (finds == "violation")
    assert log.violation(user_message("x"), mode=check_pb2.CHECK_MODE_WARN).kind == EXTRA


def test_a_prefix_digest_stands_for_the_messages_before(talk: Calls) -> None:
    request = talk.messages()
    for cut in range(len(request) + 1):
        answer = talk.check(*request[cut:], prefix=prefix_digest(request[:cut]))
        assert (answer.checked, answer.need_full_list) == (True, False), cut
        assert not answer.HasField("violation"), cut


def test_behind_a_prefix_indexes_are_those_of_the_whole(talk: Calls) -> None:
    request = [*talk.messages(), user_message("ghost")]
    whole = talk.violation(*request)
    for cut in range(1, len(request)):
        assert talk.violation(*request[cut:], prefix=prefix_digest(request[:cut])) == whole


def test_a_prefix_that_leaves_messages_out_is_a_violation(talk: Calls) -> None:
    request = talk.messages()
    told = talk.violation(prefix=prefix_digest(request[:3]))
    assert (told.kind, told.index, told.request_length, told.log_length) == (MISSING, 3, 3, 5)


def test_an_orphan_is_found_behind_a_prefix(log: Calls) -> None:
    log.append(
        *(user("q"), assistant("", "c"), result("r", "c"), result("r", "zz"), user("x")),
    )
    request = log.messages()
    whole = log.violation(*request)
    assert (whole.kind, whole.tool_call_id) == (ORPHAN, "zz")
    for cut in range(1, 4):
        assert log.violation(*request[cut:], prefix=prefix_digest(request[:cut])) == whole
    covered = log.check(*request[4:], prefix=prefix_digest(request[:4]))
    assert covered.need_full_list or covered.violation == whole


def test_a_call_in_the_prefix_answers_a_result_behind_it(talk: Calls) -> None:
    request = talk.messages()
    answer = talk.check(*request[3:], prefix=prefix_digest(request[:3]))
    assert answer.checked
    assert not answer.HasField("violation")


def test_an_overlay_in_the_prefix_is_skipped(log: Calls) -> None:
    log.append(user("a"), user("b"))
    request = [system_message("overlay"), user_message("a"), user_message("b")]
    for cut in range(1, 4):
        answer = log.check(*request[cut:], prefix=prefix_digest(request[:cut]))
        assert answer.checked, cut
        assert not answer.HasField("violation"), cut


def test_a_digest_that_does_not_match_asks_for_the_full_list(talk: Calls) -> None:
    wrong = check_pb2.PrefixDigest(count=2, digest=b"\1" * 32, leading_system=True)
    longer = check_pb2.PrefixDigest(count=9, digest=bytes(32), leading_system=True)
    for prefix in (wrong, longer, prefix_digest(talk.messages()[1:3])):
        answer = talk.check(*talk.messages()[3:], prefix=prefix)
        assert (answer.checked, answer.need_full_list) == (False, True)
        assert not answer.HasField("violation")


def test_the_same_json_in_other_bytes_asks_for_the_full_list(log: Calls) -> None:
    log.append(event(opaque('{"a":1}')), user("b"))
    request = [opaque('{ "a":1 }'), user_message("b")]
    assert log.check(request[1], prefix=prefix_digest(request[:1])).need_full_list
    assert not log.check(*request).HasField("violation")


@pytest.mark.parametrize("option", ["strict_system", "compare_reasoning", "byte_exact"])
def test_options_that_need_content_need_the_full_list(talk: Calls, option: str) -> None:
    request = talk.messages()
    answer = talk.check(
        *request[3:], prefix=prefix_digest(request[:3]), options=options(**{option: True})
    )
    assert answer.need_full_list
    assert not answer.checked


def test_a_digest_of_the_wrong_size_is_refused(talk: Calls) -> None:
    with refused("INVALID_FIELD") as told:
        talk.check(prefix=check_pb2.PrefixDigest(count=1, digest=b"short"))
    assert all(field.startswith("prefix") for field in told.fields or {"": ""})
    with refused("INVALID_FIELD"):
        talk.check(prefix=check_pb2.PrefixDigest(count=-1, digest=bytes(32)))


def test_every_kind_of_part_is_in_the_digest(log: Calls) -> None:
    stored = put(log.stub, b"bytes").sha256
    parts = [
        message_pb2.Part(text="é\0"),
        message_pb2.Part(
            attachment=message_pb2.AttachmentRef(sha256=stored, media_type="a/b", name="")
        ),
        message_pb2.Part(
            attachment=message_pb2.AttachmentRef(sha256=stored, media_type="a/b", size_bytes=5)
        ),
        message_pb2.Part(reasoning=message_pb2.Reasoning(text="r")),
        message_pb2.Part(reasoning=message_pb2.Reasoning(json="{}")),
        message_pb2.Part(tool_call_index=0),
        message_pb2.Part(opaque=message_pb2.OpaquePart(kind="k", json="1.0")),
    ]
    said = message_pb2.Message(
        role=message_pb2.ROLE_ASSISTANT,
        parts=message_pb2.PartList(parts=parts),
        tool_calls=[message_pb2.ToolCall(id="", name="n"), message_pb2.ToolCall(arguments="")],
        name="x",
    )
    log.append(event(said), event(message_pb2.Message(role=message_pb2.ROLE_USER)))
    assert log.fold_pieces()[-1].digest == prefix_digest(log.messages())
    answer = log.check(log.messages()[1], prefix=prefix_digest([said]))
    assert answer.checked
    assert not answer.HasField("violation")


def test_the_digest_follows_replaces_rewinds_and_forks(log: Calls) -> None:
    log.append(system("s"), user("a"), user("b"), replacing(user("S"), 1, 1), user("c"))
    assert log.fold_pieces()[-1].digest == prefix_digest(log.messages())
    log.rewind(2)
    assert log.fold_pieces()[-1].digest == prefix_digest(log.messages())
    log.append(replacing(user("T"), 0, 0))
    assert log.fold_pieces()[-1].digest == prefix_digest(log.messages())
    child = log.fork(4)
    assert child.fold_pieces()[-1].digest == prefix_digest(child.messages())


def test_a_request_of_ten_megabytes_is_checked(log: Calls) -> None:
    for batch in batches([user("x" * 100_000 + str(i)) for i in range(100)]):
        log.append(*batch)
    request: list[Any] = log.messages()
    assert not log.check(*request).HasField("violation")
    assert log.violation(*request[:-1]).index == 99
    assert not log.check(*request[99:], prefix=prefix_digest(request[:99])).HasField("violation")


def test_a_check_of_a_fork_is_against_the_fork(talk: Calls) -> None:
    child = talk.fork(2)
    assert not child.check(*talk.messages()[:3]).HasField("violation")
    assert child.violation(*talk.messages()).kind == EXTRA


def test_min_next_seq_reaches_what_the_caller_wrote(log: Calls) -> None:
    next_seq = log.append(user("a")).next_seq
    answer = log.check(user_message("a"), min_next_seq=next_seq)
    assert answer.next_seq >= next_seq
    assert not answer.HasField("violation")
