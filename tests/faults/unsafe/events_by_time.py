"""Foldlog, but the events of a log are told in the order of their times."""

from __future__ import annotations

from dataclasses import replace

from foldlog.application.reading import EventPage, Reading

from tests.faults.unsafe.serving import serve_with

in_order = Reading.events


async def events(
    self: Reading, session_id: str, from_seq: int, page_size: int, types: frozenset[int]
) -> EventPage:
    """Return a page of events, the earliest first."""
    page = await in_order(self, session_id, from_seq, page_size, types)
    return replace(page, events=sorted(page.events, key=lambda each: each.envelope.written_ns))


if __name__ == "__main__":
    serve_with(Reading, "events", events)
