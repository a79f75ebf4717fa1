"""What the agent knows and does in a home: index, tools, actions. It imports ports, never the engine."""
