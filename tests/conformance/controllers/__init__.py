"""What controllers say while they work, told by the real ones and by the sandbox's own.

A case is a list of deeds and the objects whose status is written down meanwhile. `make traces` runs
every case on the real control plane and keeps what it heard in `tests/data/traces`; the tests run
the same case in the sandbox and compare. To add one, write it into the module of its subject; a new
subject's module is added to `catalogue.py`.
"""
