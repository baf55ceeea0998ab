"""Simulation: scenarios, assumptions and the served sandbox."""
