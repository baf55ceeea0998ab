"""Flux's kstatus as an oracle: random objects, and what it says of them.

Run this package with `python -m` to ask it anew; that needs Go and its module proxy. The answers
are in tests/data/health.
"""
