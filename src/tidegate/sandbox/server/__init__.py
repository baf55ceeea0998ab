"""An in-memory API server."""
