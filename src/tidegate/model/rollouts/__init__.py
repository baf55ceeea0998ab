"""Rollouts: events, journal, progress and run records."""
