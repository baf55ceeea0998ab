"""Other people's controllers beside us on one cluster: what do they make of what we applied?

They are built from their Go modules, once, which takes minutes; so this is `make test-peers` and no
part of continuous integration. What they wrote is kept in tests/data/peers, and other tests compare
with that.
"""
