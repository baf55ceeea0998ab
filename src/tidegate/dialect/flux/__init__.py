"""Flux: its custom resources as units and sources, and the flags of its controllers."""
