"""The agent's view of a home: index, tools, actions. This package never imports the engine."""
