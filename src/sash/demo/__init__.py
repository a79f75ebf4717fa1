"""The simulated home and its story. It implements the home port and imports no other adapter."""
