"""The simulated home and the demo home, behind the home port. This package never imports the engine."""
