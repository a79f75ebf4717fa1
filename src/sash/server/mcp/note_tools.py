"""The MCP tools for notes: facts and pins of the user or of one session, and the user's preferences."""

from sash.app.schemas import FactList, PinList, PreferenceList
from sash.server.mcp.agent_tool import agent_tool
from sash.server.mcp.tool import CallContext, Tool
from sash.values.requests import Note, PinRequest, Preferences
from sash.values.sessions import Label
from sash.values.validated import validated


@validated(kw_only=True)
class NoteOwner:
    session_id: Label | None = None


@validated(kw_only=True)
class NewFact(Note):
    fact_id: Label | None = None
    session_id: Label | None = None


@validated(kw_only=True)
class OldFact(NoteOwner):
    fact_id: Label


@validated(kw_only=True)
class NewPin(PinRequest):
    session_id: Label | None = None


@validated(kw_only=True)
class OldPin(NoteOwner):
    pin_id: Label


@validated(kw_only=True)
class NoArguments:
    """A tool without arguments."""


@agent_tool(
    "ha_agent_list_facts",
    "List remembered facts",
    "List the facts that the agent remembers about the user. They are known in all sessions. With a "
    "session_id, list the facts of that session only.",
    is_read_only=True,
    is_idempotent=True,
)
async def list_facts(context: CallContext, notes: NoteOwner) -> FactList:
    return FactList(await context.service.list_facts(context.caller, notes.session_id))


@agent_tool(
    "ha_agent_remember",
    "Remember a fact",
    "Store a fact that the agent knows in all sessions from now on. With a session_id, only that session "
    "knows it. With a fact_id, replace the text of that fact.",
    is_idempotent=True,
)
async def remember(context: CallContext, fact: NewFact) -> FactList:
    service, caller, note = context.service, context.caller, Note(text=fact.text)
    if fact.fact_id is not None:
        return FactList((await service.edit_fact(caller, fact.fact_id, note, fact.session_id),))
    return FactList((await service.remember(caller, note, fact.session_id),))


@agent_tool(
    "ha_agent_forget",
    "Forget a fact",
    "Delete a fact by its id, as ha_agent_list_facts returned it.",
    is_destructive=True,
)
async def forget(context: CallContext, fact: OldFact) -> FactList:
    return FactList((await context.service.forget(context.caller, fact.fact_id, fact.session_id),))


@agent_tool(
    "ha_agent_list_pins",
    "List pinned texts and entities",
    "List the texts and entities that the agent is told in every turn of all sessions. With a session_id, "
    "list those of that session only.",
    is_read_only=True,
    is_idempotent=True,
)
async def list_pins(context: CallContext, notes: NoteOwner) -> PinList:
    return PinList(await context.service.list_pins(context.caller, notes.session_id))


@agent_tool(
    "ha_agent_pin",
    "Pin a text or an entity",
    "Tell the agent a text, or the present state of an entity, in every turn of all sessions from now on. "
    "With a session_id, only in that session.",
)
async def pin(context: CallContext, new: NewPin) -> PinList:
    request = PinRequest(text=new.text, entity_id=new.entity_id)
    return PinList((await context.service.pin(context.caller, request, new.session_id),))


@agent_tool(
    "ha_agent_unpin",
    "Remove a pin",
    "Remove a pin by its id, as ha_agent_list_pins returned it. Returns the remaining pins.",
    is_destructive=True,
)
async def unpin(context: CallContext, old: OldPin) -> PinList:
    await context.service.unpin(context.caller, old.pin_id, old.session_id)
    return PinList(await context.service.list_pins(context.caller, old.session_id))


@agent_tool(
    "ha_agent_get_preferences",
    "Show the user's preferences",
    "Show the preferences with which new sessions of the user start, such as the language.",
    is_read_only=True,
    is_idempotent=True,
)
async def get_preferences(context: CallContext, _: NoArguments) -> PreferenceList:
    return PreferenceList((await context.service.owner_notes(context.caller)).preferences)


@agent_tool(
    "ha_agent_set_preferences",
    "Change the user's preferences",
    "Change preferences with which new sessions of the user start. A preference with the value null is "
    "deleted. ha_agent_update_session changes those of a running session.",
    is_idempotent=True,
)
async def set_preferences(context: CallContext, new: Preferences) -> PreferenceList:
    notes = await context.service.set_owner_preferences(context.caller, new.preferences)
    return PreferenceList(notes.preferences)


NOTE_TOOLS: tuple[Tool, ...] = (
    list_facts,
    remember,
    forget,
    list_pins,
    pin,
    unpin,
    get_preferences,
    set_preferences,
)
