"""The simulated home and the demo home. This package implements the home port."""
