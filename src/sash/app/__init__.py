"""Settings, assembly, access, schemas, and the service of all surfaces. Imports neither server nor cli."""
