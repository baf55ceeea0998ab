"""Cluster access of the engine: procedures of API calls, and the cache of live objects."""
