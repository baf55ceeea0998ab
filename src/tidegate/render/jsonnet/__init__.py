"""Jsonnet in worker processes."""
