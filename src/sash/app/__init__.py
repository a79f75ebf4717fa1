"""Settings, assembly, access and schemas that all surfaces share. It imports no surface."""
