"""Runs other people's programs: with limits, a clean environment, and nothing left behind."""
