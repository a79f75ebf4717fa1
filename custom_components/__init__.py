"""Custom integrations of Home Assistant."""
