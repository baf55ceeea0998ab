"""Flux's custom resources: units, sources, and what its controllers are told."""
