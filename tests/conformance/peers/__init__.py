"""Third-party controllers next to Tidegate on one cluster: what they do with its objects.

They are built from their Go modules, once, which takes minutes; so this is `make test-peers` and
not part of continuous integration. Their writes are recorded in tests/data/peers, and other tests
compare with them.
"""
