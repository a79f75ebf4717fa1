"""State objects: they check themselves, and go to LangGraph and back without loss."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage, convert_to_messages
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages

from sash import AgentState, ConversationMemoryManager, ConversationWindow, MessageEntry, SashError
from sash.values.messages import turns

WHEN = datetime(2026, 11, 15, 13, 20, 44, 123456, tzinfo=UTC)


def call(id="1", arguments='{"on":  true}'):
    return {"id": id, "type": "function", "function": {"name": "light", "arguments": arguments}}


MESSAGES = [
    MessageEntry("system", "You are a house.", WHEN, 8, {"system"}),
    MessageEntry("user", "light on ", WHEN, 6, {"input", "context:lights"}, name="Ann"),
    MessageEntry(
        "user", [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "x"}}], WHEN, 9
    ),
    MessageEntry(
        "assistant", "", WHEN, 12, {"output", "tool_call"}, tool_calls=[call(), call("2", "not json")]
    ),
    MessageEntry("tool", "ok", WHEN, 5, {"tool_call"}, tool_call_id="1", name="light"),
    MessageEntry("tool", "", WHEN, 4, tool_call_id="2"),
    MessageEntry("assistant", "The light is on. 😀", WHEN, 9, {"output", "important"}),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: m.role)
def test_a_message_goes_to_json_and_back(message):
    assert MessageEntry.from_dict(json.loads(json.dumps(message.to_dict()))) == message


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: m.role)
def test_a_message_goes_to_langgraph_and_back(message):
    as_dict = message.to_langgraph_message()
    assert MessageEntry.from_langgraph_message(as_dict) == message
    assert MessageEntry.from_langgraph_message(json.loads(json.dumps(as_dict))) == message
    [as_object] = convert_to_messages([as_dict])
    assert as_object.text == message.text
    assert MessageEntry.from_langgraph_message(as_object) == message


def test_langgraph_understands_the_tool_calls():
    [message] = convert_to_messages([MESSAGES[3].to_langgraph_message()])
    assert message.tool_calls == [
        {"name": "light", "args": {"on": True}, "id": "1", "type": "tool_call"},
        {"name": "light", "args": {}, "id": "2", "type": "tool_call"},
    ]


def test_a_message_of_langgraph_s_own_is_read():
    ai = AIMessage("", tool_calls=[{"name": "fan", "args": {"speed": 3}, "id": "7"}], id="ai-1")
    read = MessageEntry.from_langgraph_message(ai)
    assert (read.role, read.id, read.token_count, read.tags) == (
        "assistant",
        "ai-1",
        0,
        {"output", "tool_call"},
    )
    assert read.tool_calls[0]["function"] == {"name": "fan", "arguments": '{"speed": 3}'}
    tool = MessageEntry.from_langgraph_message(ToolMessage("done", tool_call_id="7"))
    assert (tool.role, tool.content, tool.tool_call_id) == ("tool", "done", "7")
    assert MessageEntry.from_langgraph_message(HumanMessage("hi")).role == "user"


@pytest.mark.parametrize(
    "message",
    [
        {},
        "hi",
        None,
        {"role": "alien", "content": "x"},
        {"role": ["user"], "content": "x"},
        {"role": "user", "content": "x", "additional_kwargs": {"sash": {"timestamp": "yesterday"}}},
        {"role": "user", "content": "x", "additional_kwargs": {"sash": {"tags": "abc"}}},
        {"role": "user", "content": "x", "additional_kwargs": {"sash": 7}},
        {"role": "assistant", "content": "x", "tool_calls": [{"id": "1"}]},
    ],
)
def test_what_is_no_message_is_refused(message):
    with pytest.raises(SashError):
        MessageEntry.from_langgraph_message(message)


def test_a_state_runs_through_a_real_graph_and_back():
    state = AgentState("c", ConversationWindow("c", MESSAGES, max_turns=20, evict_to=0.75, evicted_count=3))

    class State(MessagesState):
        conversation_id: str
        window: dict

    def answer(state: State):
        return {"messages": [AIMessage("Anything else?", id="new")]}

    graph = StateGraph(State)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    result = graph.compile().invoke(state.to_langgraph_state())

    back = AgentState.from_langgraph_state(result)
    assert back.conversation_id == "c"
    assert back.window.messages[:-1] == tuple(MESSAGES)
    assert back.window.messages[-1].content == "Anything else?"
    assert replace(back.window, messages=state.window.messages) == state.window


@pytest.mark.parametrize(
    "state",
    [{}, [], {"messages": []}, {"messages": [], "conversation_id": "c", "window": {"other": 1}}],
)
def test_what_is_no_state_is_refused(state):
    with pytest.raises(SashError):
        AgentState.from_langgraph_state(state)


@pytest.mark.parametrize(
    "wrong",
    [
        {"token_count": -5},
        {"token_count": True},
        {"timestamp": "yesterday"},
        {"id": ""},
        {"id": None},
        {"tags": frozenset({7})},
        {"tags": frozenset({"x" * 1000})},
        {"tags": {str(n) for n in range(100)}},
        {"name": "x" * 1000},
    ],
)
def test_a_message_checks_itself(wrong):
    with pytest.raises(SashError):
        MessageEntry("user", "hi", **wrong)


def test_a_state_goes_to_langgraph_and_back():
    state = AgentState("c", ConversationWindow("c", MESSAGES, max_tokens=None, turn_starts=("x",)))
    assert AgentState.from_langgraph_state(json.loads(json.dumps(state.to_langgraph_state()))) == state


def test_what_a_node_changed_is_not_overwritten_by_what_sash_knew():
    message = MESSAGES[3].to_langgraph_message()
    message["tool_calls"] = [{"name": "fan", "args": {}, "id": "1", "type": "tool_call"}]
    read = MessageEntry.from_langgraph_message(message)
    assert [call["function"]["name"] for call in read.tool_calls] == ["fan"]
    assert read.token_count == 0
    longer = MESSAGES[1].to_langgraph_message() | {"content": "much longer"}
    assert MessageEntry.from_langgraph_message(longer).token_count == 0


def test_langchain_s_odd_forms_are_read():
    chunk = MessageEntry.from_langgraph_message(AIMessageChunk("hello"))
    assert (chunk.role, chunk.content) == ("assistant", "hello")
    mixed = MessageEntry.from_langgraph_message(AIMessage(["hello", {"type": "text", "text": "you"}]))
    assert mixed.text == "hello\nyou"
    assert MessageEntry("user", ()).content == ""


def test_langgraph_s_reducer_takes_the_messages():
    messages = [m.to_langgraph_message() for m in MESSAGES]
    assert [m.id for m in add_messages([], messages)] == [m.id for m in MESSAGES]


async def test_the_manager_gives_its_state_away():
    memory = ConversationMemoryManager(max_tokens=2000)
    await memory.add_message("c", "user", "hi")
    state = await memory.get_state("c")
    assert state.window.current_tokens == memory.get_stats("c")["current_tokens"]
    assert AgentState.from_langgraph_state(state.to_langgraph_state()) == state


def test_a_window_adds_up_what_it_is_not_told():
    assert ConversationWindow("c", [MESSAGES[0]]).current_tokens == 8
    assert (
        ConversationWindow("conv123", [MESSAGES[0]], max_tokens=4000, current_tokens=1250).current_tokens
        == 1250
    )


def test_messages_are_grouped_into_turns():
    grouped = turns([MESSAGES[6], *MESSAGES])
    assert [[m.role for m in turn] for turn in grouped] == [
        ["assistant", "system"],
        ["user"],
        ["user", "assistant", "tool", "tool", "assistant"],
    ]


def test_a_message_cannot_be_changed():
    with pytest.raises(AttributeError):
        MESSAGES[0].content = "other"
