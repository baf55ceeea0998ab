"""Helm releases: history, records and remediation."""
