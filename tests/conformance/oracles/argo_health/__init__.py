"""Health of objects by Argo CD itself; `python -m` with this package records it."""
