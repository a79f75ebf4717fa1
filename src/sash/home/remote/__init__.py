"""Home Assistant over its own API: WebSocket and REST."""

from sash.home.remote.home import RemoteHome
from sash.home.remote.link import Timing

__all__ = ["RemoteHome", "Timing"]
