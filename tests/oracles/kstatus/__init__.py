"""Flux's kstatus as an oracle: random objects, and what it says of them.

`python -m tests.oracles.kstatus` asks it anew; that needs Go and its module proxy. The answers are
in tests/data/health.
"""
