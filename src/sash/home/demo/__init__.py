"""The demo house: everything works in it, on any machine."""

from sash.home.demo.house import demo_home

__all__ = ["demo_home"]
