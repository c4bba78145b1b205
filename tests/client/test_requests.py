"""Headers, steps and requests through the clients."""

from __future__ import annotations

import pytest
from foldlog import (
    AsyncSession,
    BuiltRequest,
    ChangeKind,
    Header,
    HeaderReason,
    OneShot,
    SentRequest,
    Session,
    assistant,
    errors,
    grouped,
    replacing,
    system,
    user,
)
from foldlog.converters import openai_chat
from foldlog.converters.converted import Converted
from foldlog.core.request import request_digest

HEADER = Header(provider="openai", model="m", system_prompt="be good", tools_json=("{}",))


def digest_of(request: BuiltRequest) -> bytes:
    """Return the digest of a request as this side computes it."""
    return request_digest(request.header, ((each.message, each.group) for each in request.messages))


def test_a_header_is_recorded_once(session: Session) -> None:
    first = session.record_header(HEADER)
    assert (first.reason, first.wrote, first.seq) == (HeaderReason.INITIAL, True, 0)
    again = session.record_header(HEADER)
    assert (again.reason, again.wrote, again.seq) == (None, False, 0)
    session.open_writer()
    assert session.record_header(HEADER, skip_unchanged=True).reason is None
    assert session.record_header(HEADER).reason is HeaderReason.RESUME
    assert session.header() == HEADER


def test_a_steps_request_is_the_logs_and_can_be_checked(session: Session) -> None:
    step = session.begin_step(
        user("a"), grouped(user("b"), "g"), grouped(user("c"), "g"), header=HEADER
    )
    assert (step.step_seq, step.next_seq, step.header_reason) == (0, 5, HeaderReason.INITIAL)
    request = step.request
    assert [each.group for each in request.messages] == [None, "g", "g"]
    assert (request.header, request.count, request.step_seq) == (HEADER, 3, 0)
    assert request.encoding_sha256 == digest_of(request)
    assert session.check(request).ok
    assert session.next_seq == 5


def test_requests_come_again(session: Session) -> None:
    first = session.begin_step(user("a"), header=HEADER)
    second = session.begin_step(assistant("b"), user("c"))
    assert second.extends_previous
    session.append(replacing(system("S"), start=0, stop=4))
    for step in (first, second):
        for independent in (False, True):
            again = session.build_request(step_seq=step.step_seq, independent=independent)
            assert again == step.request
    assert session.build_request(at_seq=2).messages == first.request.messages
    assert session.build_request().encoding_sha256 == digest_of(session.build_request())
    assert session.begin_step(user("d"), skip=1).request.count == 3


def test_what_was_sent_is_recorded_with_its_converter(session: Session) -> None:
    step = session.begin_step(user("a"), header=HEADER)
    body = openai_chat.to_request(Converted.of(step.request.messages, step.request.header))
    kept = session.record_request(
        step.request, body=str(body).encode(), converter="openai_chat", converter_version="1"
    )
    session.record_one_shot("summary", model="small", first_seq=0, last_seq=1)
    events = {event.seq: event.body for event in session.events(kept.seq)}
    sent = events[kept.seq]
    assert isinstance(sent, SentRequest)
    assert (sent.encoding_sha256, sent.step_seq) == (step.request.encoding_sha256, 0)
    assert (sent.converter, len(sent.body_sha256)) == ("openai_chat", 32)
    assert events[kept.seq + 1] == SentRequest(
        2, one_shot=OneShot("summary", model="small", first_seq=0, last_seq=1)
    )
    found = session.verify_requests()
    assert (found.ok, found.verified_count, found.skipped_count) == (True, 1, 1)


def test_breaks_are_listed_over_pages(session: Session) -> None:
    steps = [session.begin_step(user("a"), header=HEADER)]
    for number in range(5):
        session.append(replacing(system(f"{number}"), start=0, stop=steps[-1].next_seq - 1))
        steps.append(session.begin_step())
    breaks = list(session.cache_breaks(page_size=2))
    assert [change.step_seq for change in breaks] == [step.step_seq for step in steps[1:]]
    assert {change.kind for change in breaks} == {ChangeKind.REPLACE}
    assert session.explain(steps[1].step_seq) == breaks[0]
    assert session.explain(0).previous_step_seq is None


def test_refusals_have_their_class(session: Session) -> None:
    with pytest.raises(errors.HeaderMissingError):
        session.begin_step(user("a"))
    with pytest.raises(errors.HeaderMissingError):
        session.build_request()
    with pytest.raises(errors.InvalidFieldError):
        session.begin_step(user("\ud800"), header=HEADER)


async def test_the_asyncio_client_has_them_too(async_session: AsyncSession) -> None:
    assert (await async_session.record_header(HEADER)).wrote
    step = await async_session.begin_step(user("a"))
    assert await async_session.build_request(step_seq=step.step_seq) == step.request
    await async_session.record_request(step.request)
    await async_session.record_one_shot("title")
    assert (await async_session.verify_requests()).ok
    assert (await async_session.explain(step.step_seq)).kind is ChangeKind.UNSPECIFIED
    assert [change async for change in async_session.cache_breaks()] == []
