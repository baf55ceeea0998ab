"""A world as an API server over HTTP, for kubectl and any other client."""
