"""Nouns: frozen values and pure functions on them."""
