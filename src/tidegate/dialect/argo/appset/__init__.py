"""ApplicationSets: parameters from generators, Applications from templates, steps from labels.

    declared ── generators ──▶ parameters ── template ──▶ Applications ── steps ──▶ units

Pure functions: queries (files of a repository, output of Go templates) are yielded, and their
results are sent back; see `queries`.
"""
