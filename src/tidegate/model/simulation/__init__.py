"""Simulations: preinstalled objects, commits, timelines."""
