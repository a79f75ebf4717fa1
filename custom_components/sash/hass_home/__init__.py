"""The home of the Home Assistant that runs Sash. It imports only `sash` and `homeassistant`."""

from .hass_home import HassHome

__all__ = ["HassHome"]
