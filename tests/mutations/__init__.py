"""Mutations of realistic repositories: which mistakes `lint` reports, and where it is wrong.

python -m tests.mutations

Each mutation changes one thing in a repository of `tests/data/corpus`. A breaking mutation is a
mistake that Argo CD or Flux would stumble over: `lint` must report an error or a warning that names
the cause. A harmless mutation changes nothing about the deployment order: `lint` must report
nothing new.
"""
