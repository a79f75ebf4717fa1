"""A house in memory: services change it, and it has a past."""

from sash.home.simulated.home import Action, SimulatedHome

__all__ = ["Action", "SimulatedHome"]
