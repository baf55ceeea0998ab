"""Cluster access: the World protocol, its requests and responses, and the client layers."""
