"""Simulated clusters behind the door."""
