"""Clusters of a command: sessions, connections, simulated clusters, live reads."""
