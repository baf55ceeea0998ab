"""Validation by a server beyond types: CRDs, built-in kinds, names."""
