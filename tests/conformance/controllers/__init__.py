"""Statuses that controllers write: those of Kubernetes, compared with those of the sandbox.

A case is a list of actions and the objects whose status is recorded meanwhile. `make traces` runs
every case on the real control plane and stores the statuses in `tests/data/traces`; the tests run
the same case in the sandbox and compare. To add one, write it into the module of its subject; a new
subject's module is added to `catalogue.py`.
"""
