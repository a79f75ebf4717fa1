"""Reads the states of entities."""

from homeassistant.core import State as HassState

from sash.home.home_assistant.home_assistant_json import LAYOUT_ATTRIBUTES
from sash.ports.home import State

from .json_values import to_json_value


def read_state(state: HassState) -> State:
    """Convert a state."""
    attributes = {name: to_json_value(value) for name, value in state.attributes.items()}
    return State(state.entity_id, state.state, attributes, state.last_changed, state.last_updated)


def read_layout_state(state: HassState) -> State:
    """Convert a state with only the attributes that are part of the layout."""
    attributes = {
        name: to_json_value(state.attributes[name]) for name in LAYOUT_ATTRIBUTES if name in state.attributes
    }
    return State(state.entity_id, state.state, attributes, state.last_changed, state.last_updated)
