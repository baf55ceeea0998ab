"""A World as a Kubernetes API server over HTTP, for kubectl and any other client."""
