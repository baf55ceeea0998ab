"""Web servers: files over HTTP."""
