"""Simulated clusters behind the `World` protocol."""
