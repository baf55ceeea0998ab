"""Rollout of a plan: observers, diagnosis, replanning, status, run record."""
