"""Measurement of durations in a real cluster, as a profile."""
