"""Helm: release records in a cluster, revisions, hooks and actions."""
