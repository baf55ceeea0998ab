"""Discovery of the units in a repository."""
