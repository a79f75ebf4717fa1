"""Home Assistant on the network, by its WebSocket and REST API. Of `home` it imports `home_assistant`."""

from sash.home.remote.remote_home import RemoteHome
from sash.home.remote.websocket import Timing

__all__ = ["RemoteHome", "Timing"]
