"""Recovery plans: what is open, what is owed, how risky it is, and that closing it heals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from foldlog.core.event import EventType, ToolCallPhase
from foldlog.core.message import Role, ToolCall
from foldlog.core.pairing import orphans, unanswered
from foldlog.core.recovery import (
    CallRisk,
    Closer,
    OpenStep,
    OpenTurn,
    OwedCall,
    Plan,
    Trace,
    interrupted_from,
    plan_recovery,
)
from foldlog.core.turns import TurnState
from hypothesis import given
from hypothesis import strategies as st

UNKNOWN, NOT_STARTED = CallRisk.OUTCOME_UNKNOWN, CallRisk.NOT_STARTED


@dataclass(frozen=True, slots=True)
class Entry:
    """A live surface event."""

    position: int
    seq: int
    role: int
    call_ids: tuple[str | None, ...] = ()
    tool_call_id: str | None = None


@dataclass
class Log:
    """A log, kept up event by event: its surface, its turns, and the traces of its events."""

    surface: list[Entry] = field(default_factory=list)
    turns: TurnState = field(default_factory=TurnState)
    traces: list[Trace] = field(default_factory=list)

    @property
    def seq(self) -> int:
        """The seq the next event takes."""
        return len(self.traces)

    def event(self, type_: EventType) -> Log:
        """Append a start or an end."""
        self._take(Trace(self.seq, type_))
        return self

    def says(self, *ids: str, at: int | None = None) -> Log:
        """Append an assistant message with calls; with `at`, as a replace of one position."""
        calls = tuple(ToolCall(id_, f"tool {id_}") for id_ in ids)
        self._stand(Entry(self.seq if at is None else at, self.seq, Role.ASSISTANT, ids))
        self._take(Trace(self.seq, EventType.ASSISTANT_MESSAGE, calls))
        return self

    def result(self, id_: str) -> Log:
        """Append a result."""
        self._stand(Entry(self.seq, self.seq, Role.TOOL, tool_call_id=id_))
        self._take(Trace(self.seq, EventType.TOOL_RESULT, call_id=id_))
        return self

    def logs(
        self, id_: str, phase: ToolCallPhase = ToolCallPhase.DISPATCHED, key: str | None = None
    ) -> Log:
        """Append a tool_call event."""
        self._take(Trace(self.seq, EventType.TOOL_CALL, (), id_, phase, key))
        return self

    def summarises(self, start: int, stop: int) -> Log:
        """Append a system message in place of a range of positions."""
        self.surface = [e for e in self.surface if not start <= e.position <= stop]
        self._stand(Entry(start, self.seq, Role.SYSTEM))
        self._take(Trace(self.seq, EventType.SYSTEM_MESSAGE))
        return self

    def closes(self, closer: Closer) -> Log:
        """Append what closes something."""
        match closer:
            case OwedCall():
                return self.result(closer.call_id)
            case OpenStep():
                return self.event(EventType.STEP_END)
            case OpenTurn():
                return self.event(EventType.TURN_END)

    def _stand(self, entry: Entry) -> None:
        kept = [e for e in self.surface if e.position != entry.position]
        self.surface = sorted([*kept, entry], key=lambda e: e.position)

    def _take(self, trace: Trace) -> None:
        self.traces.append(trace)
        self.turns = self.turns.after(trace.type, trace.seq)

    def plan(self) -> Plan:
        """Return the plan, as an application comes to it."""
        from_seq = interrupted_from(self.turns)
        if from_seq is None:
            return Plan()
        return plan_recovery(from_seq, self.surface, self.traces[from_seq:])


def turn() -> Log:
    """A log in which a turn is open."""
    return Log().event(EventType.TURN_START)


def step() -> Log:
    """A log in which a step of a turn is open."""
    return turn().event(EventType.STEP_START)


def risks(log: Log) -> list[tuple[str, CallRisk]]:
    """Return the owed calls with their risks."""
    return [(call.call_id, call.risk) for call in log.plan().owed]


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        pytest.param(turn().says("a"), [("a", UNKNOWN)], id="nothing is known of it"),
        pytest.param(
            turn().says("a", "b").logs("a"),
            [("a", UNKNOWN), ("b", NOT_STARTED)],
            id="its turn logs dispatches and not this one",
        ),
        pytest.param(
            step().says("a").event(EventType.STEP_END),
            [("a", NOT_STARTED)],
            id="its step has ended",
        ),
        pytest.param(
            step().says("a").logs("a").event(EventType.STEP_END),
            [("a", UNKNOWN)],
            id="dispatched in a step that has ended",
        ),
        pytest.param(
            step().says("a").event(EventType.STEP_START),
            [("a", UNKNOWN)],
            id="its step was followed by another without an end",
        ),
        pytest.param(
            turn().says("a").logs("a", ToolCallPhase.UNSPECIFIED),
            [("a", UNKNOWN)],
            id="a phase not said is a dispatch",
        ),
        pytest.param(
            turn().says("a", "b").logs("a", ToolCallPhase.FAILED),
            [("a", UNKNOWN), ("b", UNKNOWN)],
            id="a turn that logs ends only does not log dispatches",
        ),
        pytest.param(
            turn().says("a", "b").logs("a").event(EventType.TURN_START).says("c"),
            [("a", UNKNOWN), ("b", NOT_STARTED), ("c", UNKNOWN)],
            id="each turn by its own habits",
        ),
        pytest.param(
            turn().says("a").logs("a").result("a").says("a"),
            [("a", NOT_STARTED)],
            id="the dispatch of an answered call of the same id is another's",
        ),
        pytest.param(
            turn().logs("a").says("a"), [("a", UNKNOWN)], id="dispatched before its message"
        ),
        pytest.param(
            turn().says("a").logs("a").says("a", at=1),
            [("a", UNKNOWN)],
            id="dispatched before its message was rewritten",
        ),
        pytest.param(
            turn().says("a").says("a"), [("a", UNKNOWN)], id="only the last of an id is owed"
        ),
        pytest.param(
            turn().says("a").says("a").result("a"), [], id="no append can answer the earlier one"
        ),
        pytest.param(turn().says("a").summarises(1, 1), [], id="compacted away"),
        pytest.param(turn().logs("a"), [], id="dispatched without a message"),
        pytest.param(
            Log().says("old").event(EventType.TURN_START).says("a"),
            [("a", UNKNOWN)],
            id="a call before the turn is left alone",
        ),
        pytest.param(turn().says("a").event(EventType.TURN_END), [], id="a closed turn"),
        pytest.param(
            Log().event(EventType.STEP_START).says("a"),
            [("a", UNKNOWN)],
            id="a step that no turn encloses",
        ),
    ],
)
def test_risks(log: Log, expected: list[tuple[str, CallRisk]]) -> None:
    assert risks(log) == expected


def test_a_plan_names_calls_by_message_tool_and_key() -> None:
    log = turn().says("a").logs("a", key="first").logs("a", key="again")
    assert log.plan().owed == (OwedCall("a", "tool a", 1, UNKNOWN, "again"),)


def test_what_is_open_closes_from_within() -> None:
    log = step().event(EventType.TURN_START).event(EventType.STEP_START)
    assert log.plan().open == (OpenStep(3), OpenTurn(2, None, 1), OpenStep(1), OpenTurn(0, None, 1))
    assert log.plan().open_turn_seqs == (2, 0)
    assert log.plan().open_step_seq == 3


def test_a_log_where_all_is_closed_has_an_empty_plan() -> None:
    log = step().says("a").event(EventType.STEP_END).event(EventType.TURN_END)
    assert log.plan() == Plan()
    assert not log.plan().is_interrupted


STRUCTURE = st.sampled_from(
    [EventType.TURN_START, EventType.TURN_END, EventType.STEP_START, EventType.STEP_END]
)
IDS = st.sampled_from("abc")


@st.composite
def logs(draw: st.DrawFn) -> Log:
    log = Log()
    for _ in range(draw(st.integers(0, 20))):
        match draw(st.sampled_from(["structure", "says", "result", "logs", "summary"])):
            case "structure":
                log.event(draw(STRUCTURE))
            case "says":
                log.says(*draw(st.lists(IDS, max_size=3)))
            case "result":
                log.result(draw(IDS))
            case "logs":
                log.logs(draw(IDS), draw(st.sampled_from(ToolCallPhase)))
            case "summary" if log.seq:
                start = draw(st.integers(0, log.seq - 1))
                log.summarises(start, draw(st.integers(start, log.seq - 1)))
    return log


def owed_by_definition(log: Log, from_seq: int) -> list[tuple[int, str]]:
    """Return (seq, id) of each call since a seq that one more result would answer."""
    found = []
    for entry, id_ in unanswered(log.surface):
        answer = Entry(log.seq, log.seq, Role.TOOL, tool_call_id=id_)
        if entry.seq >= from_seq and (entry, id_) not in unanswered([*log.surface, answer]):
            found.append((entry.seq, id_))
    return found


@given(logs())
def test_a_call_is_owed_if_it_was_made_since_and_a_result_would_answer_it(log: Log) -> None:
    from_seq = interrupted_from(log.turns)
    expected = [] if from_seq is None else owed_by_definition(log, from_seq)
    assert [(call.seq, call.call_id) for call in log.plan().owed] == expected


@given(logs())
def test_what_is_open_is_what_the_turns_say(log: Log) -> None:
    plan = log.plan()
    assert plan.open_turn_seqs == log.turns.open_turns[::-1]
    if log.turns.open_step_seq is not None:
        assert plan.open_step_seq == log.turns.open_step_seq


@given(logs())
def test_closing_heals_once_and_orphans_nothing(log: Log) -> None:
    before, orphaned = log.plan(), len(orphans(log.surface))
    for closer in before.closers:
        log.closes(closer)
    assert log.turns.open_turns == ()
    assert log.plan() == Plan()
    assert len(orphans(log.surface)) == orphaned
    left: Sequence[tuple[Entry, str]] = unanswered(log.surface)
    assert not {(call.seq, call.call_id) for call in before.owed} & {(e.seq, i) for e, i in left}


@given(logs())
def test_a_call_that_may_have_run_is_never_called_not_started(log: Log) -> None:
    from_seq = interrupted_from(log.turns) or 0
    named = {t.call_id: t.seq for t in log.traces[from_seq:] if t.type == EventType.TOOL_CALL}
    for call in log.plan().owed:
        if named.get(call.call_id, -1) > call.seq:
            assert call.risk is UNKNOWN
