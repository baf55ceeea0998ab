"""Runs commands over a directory of checkouts: what was read, what failed, what was found."""
