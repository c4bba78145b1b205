"""A worker is killed between a tool's dispatch and its result, and another takes over."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from foldlog import (
    Body,
    CallRisk,
    Client,
    HeaderReason,
    Message,
    OwedCall,
    RecoveryPlan,
    Session,
    StepEnd,
    ToolCallState,
    TurnEnd,
    turn_start,
)

from demo.mail import Mail
from demo.screen import Screen, gist
from demo.stepping import SESSION_ID, Stepper, risky
from demo.transcripts import Transcript

RISKS = {
    CallRisk.NOT_STARTED: "[green]not started[/]",
    CallRisk.OUTCOME_UNKNOWN: "[red]outcome unknown[/]",
}


def show(
    screen: Screen, client: Client, address: str, transcript: Transcript, folder: Path
) -> Session:
    """Kill a worker, plan, recover, and go on to the transcript's end; return the session."""
    screen.section(
        "Kill a worker between a call and its result",
        "It works in steps; each request is checked, sent and recorded. Then: SIGKILL.",
    )
    mail = Mail(folder / "outbox")
    _kill(screen, address, mail, folder / "outbox")
    plan = client.session(SESSION_ID).plan_recovery()
    _claim_planned(screen, plan, transcript)
    _claim_listed(screen, client, plan)
    screen.section("Recover, and go on", "One call: client.restore(session_id).")
    session = client.restore(SESSION_ID, owner="worker-2")
    _claim_closed(screen, session, plan)
    stepper = _claim_checked(screen, session)
    _go_on(screen, session, stepper, mail, transcript)
    return session


def _kill(screen: Screen, address: str, mail: Mail, outbox: Path) -> None:
    command = [sys.executable, "-m", "demo.stepping", address, str(outbox)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as worker:
        assert worker.stdout is not None
        said = worker.stdout.readline().strip()
        worker.kill()
    screen.claim(
        said == "sent" and worker.returncode == -signal.SIGKILL and len(mail.sent) == 1,
        f"worker process {worker.pid} was killed when the mail was out, unknown to the log",
        f"in the outbox: {', '.join(mail.sent)}",
    )


def _claim_planned(screen: Screen, plan: RecoveryPlan, transcript: Transcript) -> None:
    columns = ["call", "tool", "what is known of it"]
    screen.table(columns, [_row(call) for call in plan.owed_calls])
    answer = transcript.batches[risky(transcript)].events[0].body
    assert isinstance(answer, Message)
    risks = [CallRisk.OUTCOME_UNKNOWN, CallRisk.NOT_STARTED, CallRisk.NOT_STARTED]
    screen.claim(
        [call.call_id for call in plan.owed_calls] == [call.id for call in answer.tool_calls]
        and [call.risk for call in plan.owed_calls] == risks,
        "the plan says which call may have had its effect, and which had none",
        f"a turn is open since seq {plan.open_turn_seqs[0]}, a step since {plan.open_step_seq}",
    )


def _row(call: OwedCall) -> tuple[str, ...]:
    return (call.call_id, call.name or "", RISKS[call.risk])


def _claim_listed(screen: Screen, client: Client, plan: RecoveryPlan) -> None:
    found = list(client.unresolved_calls())
    screen.claim(
        [(each.session_id, each.call_id) for each in found]
        == [(SESSION_ID, plan.owed_calls[0].call_id)],
        f"of {len(list(client.list()))} sessions it is the one call whose end nobody knows",
        f"listed with its key: {found[0].idempotency_key}" if found else "",
    )


def _claim_closed(screen: Screen, session: Session, plan: RecoveryPlan) -> None:
    recovery = session.recovery
    assert recovery is not None
    *results, step_end, turn_end = [event.body for event in session.events(plan.next_seq)]
    screen.claim(
        recovery.plan == plan
        and len(recovery.closing_seqs) == len(plan.owed_calls) + 2
        and all(isinstance(each, Message) and _is_synthetic(each) for each in results)
        and step_end == StepEnd(1, "interrupted")
        and turn_end == TurnEnd(6, "interrupted"),
        f"recovery closed it all in one batch, seqs {recovery.closing_seqs[0]} to "
        f"{recovery.closing_seqs[-1]}",
        "a result for each call, marked as synthetic; then step_end and turn_end",
    )
    screen.conversation(recovery.messages[-len(results) :])
    screen.claim(
        session.writer_epoch == 2 and not session.plan_recovery().interrupted,
        "the new worker holds writer epoch 2, and nothing is open any more",
    )


def _is_synthetic(message: Message) -> bool:
    return json.loads(message.metadata_json or "{}").get("synthetic") is True


def _claim_checked(screen: Screen, session: Session) -> Stepper:
    recovery = session.recovery
    assert recovery is not None
    assert recovery.header is not None
    stepper = Stepper(session, recovery.header)
    sent = stepper.begin([turn_start(reason="resumed")], number=1)
    request = sent.step.request
    screen.claim(
        sent.checked.ok
        and request.messages == recovery.messages
        and sent.step.header_reason is HeaderReason.RESUME
        and sent.step.extends_previous,
        f"the next request passes the check: {request.count} messages, {len(sent.body):,} bytes",
        "it extends the request before the crash, so the provider's cache serves;",
        "the header was written again with it, for the reason RESUME",
    )
    return stepper


def _go_on(
    screen: Screen, session: Session, stepper: Stepper, mail: Mail, transcript: Transcript
) -> None:
    index = risky(transcript)
    calls = transcript.batches[index]
    session.append(*map(_again, (event.body for event in calls.events)))
    state = calls.events[1].body
    assert isinstance(state, ToolCallState)
    went_out = mail.send(state.idempotency_key or "")
    for batch in transcript.batches[index + 1 : index + 1 + len(calls.events[1:])]:
        session.append(*map(_again, (event.body for event in batch.events)))
    screen.claim(
        not went_out and len(mail.sent) == 1,
        "the call was made again under its key, and it is still one mail",
        "the tool knows the key, and answers what it answered nobody the first time",
    )
    stepper.work(transcript.batches[index + 1 + len(calls.events[1:]) :])
    last, recorded = session.messages()[-1].message, _messages(transcript)[-1]
    screen.claim(
        last == recorded and not session.plan_recovery().interrupted,
        "the agent went on to the conversation's end",
        f"the last message: {gist(last, 50)}",
    )


def _messages(transcript: Transcript) -> Sequence[Message]:
    return [event.body for event in transcript.events if isinstance(event.body, Message)]


def _again(body: Body) -> Body:
    """Return what belongs to calls that are made a second time, under new ids."""
    match body:
        case Message(tool_call_id=str(id_)):
            return replace(body, tool_call_id=f"{id_}-2")
        case Message(tool_calls=calls):
            return replace(body, tool_calls=tuple(replace(c, id=f"{c.id}-2") for c in calls))
        case ToolCallState(id=str(id_)):
            return replace(body, id=f"{id_}-2")
    return body
