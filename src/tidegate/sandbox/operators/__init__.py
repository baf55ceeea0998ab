"""Operators played from rows: custom resources become ready, and produce what they produce.

    OPERATORS = operators(builtin().rows)

Assumed, not checked: each row names where its facts come from.
"""
