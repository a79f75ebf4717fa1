"""A Home Assistant on the network, by its WebSocket and REST APIs. It imports no other module of `home`."""

from sash.home.remote.remote_home import RemoteHome
from sash.home.remote.websocket import Timing

__all__ = ["RemoteHome", "Timing"]
