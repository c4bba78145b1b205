"""Nous contexts, and the cases of their ancestor's reader.

Where ours differs tests/cases/deviations.json says why.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from foldlog.core.message import Message
from foldlog.importers.errors import DamagedFileError, UnreadableFileError
from foldlog.importers.formats import Format
from foldlog.importers.report import NoteKind

from tests.importers.reading import Made, bytes_of, read

TIME = "2020-01-01T00:00:00Z"


def event(seq: Any, kind: str, data: Any, **more: Any) -> dict[str, Any]:
    """Return an event."""
    return {"seq": seq, "type": kind, "time": TIME, "data": data} | more


def restored(*events: Any, version: int = 2, salvage: bool = False, **more: Any) -> Made:
    """Return what a context of these events becomes."""
    blob = {"version": version, "events": list(events), "messages": []} | more
    return read(json.dumps(blob).encode(), Format.NOUS, salvage=salvage)


def test_messages_of_version_1_are_kept_and_one_of_no_role_is_said() -> None:
    made = read(bytes_of("nous_v1.json"))
    assert [role for role, _ in made.said] == ["system", "user", "assistant", "tool"]
    assert made.customs == ["nous.message", "nous.context"]
    assert made.noted(NoteKind.UNREPRESENTED) == [
        "line 5: 'narrator' is no role: it is kept as a custom event"
    ]
    (_, user), (_, answer) = made.surface[1:3]
    assert json.loads(user.metadata_json or "") == {"source": "web"}
    assert answer.tool_calls[0].arguments == '{"city":"Ulm"}'


def test_events_of_version_3_keep_their_seqs_and_gaps() -> None:
    made = read(bytes_of("nous_v3.json"))
    assert [e.seq for e in made.entries] == [*range(8), 12, 13]
    assert made.said == [("system", "[summary] It rains.")]
    message = made.entries[3].event.body
    assert isinstance(message, Message)
    assert message.reasoning == "I ask"


def test_c030_an_unknown_event_keeps_its_seq_so_that_ranges_go_on_naming_the_same() -> None:
    made = restored(
        event(0, "zzz", {}),
        event(1, "user_message", {"content": "b"}),
        event(2, "user_message", {"content": "c"}),
        event(3, "system_message", {"content": "S", "surface_op": ["replace", 1, 1]}),
    )
    assert [(seq, message.content) for seq, message in made.surface] == [(3, "S"), (2, "c")]
    assert made.customs == ["nous.zzz", "nous.context"]


@pytest.mark.parametrize(
    "op",
    [["replace", 3, 1], ["replace", -1, 0], ["replace", 0.0, 1], ["replace", 0], "replace", False],
    ids=["c033 reversed", "negative", "float", "arity", "text", "c031 false"],
)
def test_c031_c033_a_range_that_means_nothing_refuses_the_file(op: Any) -> None:
    events = [
        event(0, "user_message", {"content": "a"}),
        event(1, "system_message", {"content": "S", "surface_op": op}),
        event(2, "user_message", {"content": "c"}),
    ]
    with pytest.raises(DamagedFileError, match=r"event 1 of 3: .* is no surface_op"):
        restored(*events)
    made = restored(*events, salvage=True)
    assert made.said == [("user", "a")]
    assert made.noted(NoteKind.DAMAGED)


@pytest.mark.parametrize(
    "events",
    [
        [event(0, "user_message", ["x"])],
        [event(7, "user_message", {"content": "a"}), event(3, "user_message", {"content": "b"})],
        [event(-1, "user_message", {"content": "a"})],
        [event(0, "", {})],
        ["no event"],
    ],
    ids=["c032 data", "c032 seqs", "negative", "no type", "text"],
)
def test_c032_nothing_is_repaired_in_silence(events: list[Any]) -> None:
    with pytest.raises(DamagedFileError, match=r"event \d of \d: "):
        restored(*events)


def test_c032_a_time_that_is_none_is_said() -> None:
    made = restored(
        event(0, "user_message", {"content": "a"}), event(1, "user_message", {}, time="yesterday")
    )
    assert made.entries[0].event.time_ns == made.entries[1].event.time_ns
    assert made.noted(NoteKind.ASSUMED) == [
        "line 2: it has no time: that of the event before it was taken"
    ]


@pytest.mark.parametrize("op", [None, "append", ["replace", 0, 0]], ids=["c034", "append", "own"])
def test_c034_what_appends_appends(op: Any) -> None:
    made = restored(event(0, "user_message", {"content": "a", "surface_op": op}))
    assert made.said == [("user", "a")]
    assert made.entries[0].event.replace is None


def test_a_range_that_ends_beyond_its_own_event_covers_what_is_there() -> None:
    made = restored(
        event(0, "user_message", {"content": "a"}),
        event(1, "user_message", {"content": "S", "surface_op": ["replace", 0, 9]}),
        event(2, "user_message", {"content": "b"}),
    )
    assert made.said == [("user", "S"), ("user", "b")]
    assert len(made.noted(NoteKind.CHANGED)) == 1


def test_a_range_that_begins_beyond_its_own_event_has_no_place() -> None:
    with pytest.raises(DamagedFileError, match="beyond its own seq 0"):
        restored(event(0, "user_message", {"surface_op": ["replace", 5, 9]}))


def test_a_result_of_no_call_keeps_its_seq_as_a_custom_event() -> None:
    made = restored(
        event(0, "tool_result", {"content": "r"}), event(1, "user_message", {"content": "q"})
    )
    assert [e.seq for e in made.entries][:2] == [0, 1]
    assert made.customs == ["nous.tool_result", "nous.context"]


def test_a_result_of_no_call_cannot_replace() -> None:
    with pytest.raises(DamagedFileError, match="can replace"):
        restored(
            event(0, "user_message", {"content": "q"}),
            event(1, "tool_result", {"content": "r", "surface_op": ["replace", 0, 0]}),
        )


def test_without_a_list_of_events_the_messages_count() -> None:
    made = restored(events={"not": "a list"}, messages=[{"role": "user", "content": "q"}])
    assert made.said == [("user", "q")]
    assert made.noted(NoteKind.ASSUMED)


def test_what_surrounds_the_events_follows_them() -> None:
    made = read(bytes_of("nous_v1.json"))
    payload = made.entries[-1].event.body.payload  # type: ignore[union-attr]
    assert json.loads(payload)["system_prompt"] == "Be kind."


@pytest.mark.parametrize("version", [0, 4, "1", None])
def test_other_versions_are_refused(version: Any) -> None:
    blob = json.dumps({"version": version, "messages": []}).encode()
    with pytest.raises(UnreadableFileError, match="is not known"):
        read(blob, Format.NOUS)
