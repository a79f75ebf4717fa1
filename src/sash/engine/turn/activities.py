"""What the agent does while a tool runs, in words for a person who waits."""

# The tools of Sash. A tool of the application is called by its name.
_ACTIVITIES = {
    "analyze_errors": "Looking for problems",
    "analyze_history": "Calculating with the history",
    "call_service": "Changing something in the home",
    "cancel_waiting": "Cancelling what waits",
    "diagnose_entity": "Looking for the cause of a problem",
    "do_later": "Noting it for later",
    "forget": "Forgetting a fact",
    "get_history": "Reading the history",
    "get_logbook": "Reading the logbook",
    "get_states": "Reading states",
    "list_services": "Looking up what can be done",
    "list_waiting": "Looking up what waits",
    "query_service": "Asking the home",
    "recall": "Looking up what was said before",
    "remember": "Noting a fact",
    "reset_conversation": "Starting over",
    "search_index": "Looking for devices",
    "undo_last_action": "Undoing the last action",
}


def describe_activity(tool: str) -> str:
    """Return a sentence without a full stop for a call of a tool."""
    return _ACTIVITIES.get(tool, f"Calling {tool}")


def describe_end(tool: str) -> str:
    """Return a sentence without a full stop for the end of a call."""
    return f"{_ACTIVITIES[tool]}: finished" if tool in _ACTIVITIES else f"{tool} has answered"
