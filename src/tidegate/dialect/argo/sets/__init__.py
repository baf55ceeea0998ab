"""ApplicationSets: parameters from generators, Applications from templates, steps from labels.

    declared ── generators ──▶ parameters ── template ──▶ Applications ── steps ──▶ units

All of it is pure. What a set must look up (the files of a repository, what Go makes of a template)
it asks for, and is sent: see `asking`.
"""
