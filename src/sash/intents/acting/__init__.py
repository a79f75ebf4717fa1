"""Commands: the service that a clause asks for, the entities that it means, and the report after the call."""
