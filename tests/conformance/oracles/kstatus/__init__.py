"""Flux's kstatus as an oracle: random objects, and their results.

Run this package with `python -m` to record them again; that needs Go and its module proxy. The
results are in tests/data/health.
"""
