"""LangGraph on PostgresSaver: the saver alone, a graph with tools, the same with DeltaChannel."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, TypedDict
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import _messages_delta_reducer, add_messages

from bench.workload import TOOL, Json

OF_THREAD: Final = (
    "SELECT checkpoint_id FROM checkpoints WHERE thread_id = %s ORDER BY checkpoint_id"
)


class Whole(TypedDict):
    """The state as LangGraph's guides have it: each step stores the whole list."""

    messages: Annotated[list[AnyMessage], add_messages]


class Delta(TypedDict):
    """The state with the channel that stores what a step adds, and all of it now and then."""

    messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer)]


def message(given: Json) -> AnyMessage:
    """Return a message in LangChain's form."""
    named = {"content": given["content"], "id": str(uuid4())}
    match given["role"]:
        case "user":
            return HumanMessage(**named)
        case "tool":
            return ToolMessage(tool_call_id=given["tool_call_id"], name=TOOL, **named)
    calls = [_call(each) for each in given.get("tool_calls", ())]
    return AIMessage(tool_calls=calls, **named)


def _call(given: Json) -> Any:
    function = given["function"]
    arguments = json.loads(function["arguments"])
    return {"name": function["name"], "args": arguments, "id": given["id"], "type": "tool_call"}


class Saved:
    """What a saver alone and a graph have in common: a PostgresSaver, and threads."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def prepare(self) -> None:
        """Make the tables."""
        with PostgresSaver.from_conn_string(self._url) as saver:
            saver.setup()

    async def connect(self) -> None:
        """Connect the saver."""
        self._lent = PostgresSaver.from_conn_string(self._url)
        self.saver = self._lent.__enter__()

    async def close(self) -> None:
        """Close the saver's connection."""
        self._lent.__exit__(None, None, None)

    def halfway(self, session_id: str) -> Any:
        """Return the configuration of the checkpoint of the first half of a grown session."""
        rows = self.saver.conn.execute(OF_THREAD, (session_id,)).fetchall()
        return configuration(session_id, checkpoint_id=rows[0]["checkpoint_id"])


def configuration(session_id: str, **more: Any) -> Any:
    """Return what names a thread to LangGraph."""
    return {"configurable": {"thread_id": session_id, "checkpoint_ns": "", **more}}


class LangGraphSaver(Saved):
    """One checkpoint per turn, put by hand: less than any graph does."""

    async def session(self, session_id: str) -> Any:
        """Return a thread's newest configuration, messages and version."""
        found = self.saver.get_tuple(configuration(session_id))
        if found is None:
            return {"at": configuration(session_id), "messages": [], "version": 0}
        messages = found.checkpoint["channel_values"]["messages"]
        return {"at": found.config, "messages": messages, "version": len(messages)}

    async def append(self, session: Any, turn: Sequence[Json]) -> None:
        """Put a checkpoint with the messages of a turn added."""
        session["messages"] = [*session["messages"], *map(message, turn)]
        session["version"] += 1
        versions = {"messages": f"{session['version']:032}.0"}
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"messages": session["messages"]}
        checkpoint["channel_versions"] = versions
        about = {"source": "loop", "step": session["version"]}
        session["at"] = self.saver.put(session["at"], checkpoint, about, versions)

    async def grow(self, session_id: str, messages: Sequence[Json]) -> None:
        """Put two checkpoints, each with a half more."""
        session, half = await self.session(session_id), len(messages) // 2
        await self.append(session, messages[:half])
        session["version"] = half
        await self.append(session, messages[half:])

    async def load(self, session_id: str) -> int:
        """Read the newest checkpoint."""
        return len((await self.session(session_id))["messages"])

    async def fork(self, session_id: str, at: int) -> None:
        """Read the checkpoint of the first half, and put it into another thread."""
        found = self.saver.get_tuple(self.halfway(session_id))
        assert found is not None
        versions = found.checkpoint["channel_versions"]
        about = {"source": "fork", "step": 0}
        self.saver.put(configuration(str(uuid4())), found.checkpoint, about, versions)


class LangGraph(Saved):
    """A graph of an agent and its tools, one run per turn, each step durable."""

    state: type = Whole

    async def connect(self) -> None:
        """Connect the saver, and compile the graph on it."""
        await super().connect()
        self._said: Iterator[AnyMessage] = iter(())
        graph: Any = StateGraph(self.state)
        graph.add_node("agent", self._say)
        graph.add_node("tools", self._say)
        graph.add_edge(START, "agent")
        graph.add_conditional_edges("agent", _next, ["tools", END])
        graph.add_edge("tools", "agent")
        self._graph = graph.compile(checkpointer=self.saver)

    def _say(self, state: Any) -> Any:
        return {"messages": [next(self._said)]}

    async def session(self, session_id: str) -> Any:
        """Return what names the thread."""
        return configuration(session_id)

    async def append(self, session: Any, turn: Sequence[Json]) -> None:
        """Run the graph on the user's message; its nodes say the rest."""
        first, *rest = map(message, turn)
        self._said = iter(rest)
        self._graph.invoke({"messages": [first]}, session, durability="sync", stream_mode="updates")

    async def grow(self, session_id: str, messages: Sequence[Json]) -> None:
        """Update the state twice, each time with a half."""
        session, half = configuration(session_id), len(messages) // 2
        for part in (messages[:half], messages[half:]):
            said = {"messages": [message(each) for each in part]}
            self._graph.update_state(session, said, as_node="agent")

    async def load(self, session_id: str) -> int:
        """Read the state."""
        state = self._graph.get_state(configuration(session_id))
        return len(state.values["messages"])

    async def fork(self, session_id: str, at: int) -> None:
        """Branch off in the same thread, which is how LangGraph forks."""
        self._graph.update_state(self.halfway(session_id), None, as_node="__copy__")


def _next(state: Any) -> str:
    return "tools" if state["messages"][-1].tool_calls else END


class LangGraphDelta(LangGraph):
    """The same with DeltaChannel."""

    state = Delta
