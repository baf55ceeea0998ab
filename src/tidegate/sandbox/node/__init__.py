"""Simulated nodes: scheduling, starting, probing and stopping of pods."""
