"""Verbs: the only place where stages meet, and where a world is chosen."""
