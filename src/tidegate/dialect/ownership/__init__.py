"""Ownership of live objects: tracking metadata and inventories."""
