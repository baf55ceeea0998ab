"""Simulated clusters that implement the `World` protocol."""
