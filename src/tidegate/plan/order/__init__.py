"""Verification of the order of a finished rollout."""
