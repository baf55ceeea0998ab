"""Operators that a cluster begins with: what they consist of, and how they come up."""
