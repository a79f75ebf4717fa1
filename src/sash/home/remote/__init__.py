"""The home adapter for a Home Assistant on the network, over its WebSocket and REST APIs."""

from sash.home.remote.remote_home import RemoteHome
from sash.home.remote.websocket import Timing

__all__ = ["RemoteHome", "Timing"]
