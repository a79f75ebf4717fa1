"""Settings, assembly, access, schemas and the service of all surfaces. It does not import server or cli."""
