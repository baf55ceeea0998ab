"""Operators simulated from rows: custom resources become ready and produce objects.

    OPERATORS = operator_controller(builtin().rows)

The behavior is assumed, not checked: each row names the source of its facts.
"""
