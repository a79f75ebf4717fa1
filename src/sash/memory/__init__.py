"""The sliding-window memory: window, tokens, digest. Pure; it imports only values and errors."""
