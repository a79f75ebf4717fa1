"""Reads the data of Home Assistant, for the adapters of it. It imports no other module of `home`."""
