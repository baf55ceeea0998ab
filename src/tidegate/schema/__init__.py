"""Schemas of kinds: their shapes, and the validation of objects against them."""
