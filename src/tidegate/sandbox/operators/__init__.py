"""Operators played from rows: custom resources become ready, and produce what they produce.

    OPERATORS = operators(builtin_rows())

Assumed, not checked: each row names where its facts come from.
"""

from tidegate.sandbox.operators.interpreter import operators, unserved
from tidegate.sandbox.operators.reader import builtin_rows, read_rows

__all__ = ["builtin_rows", "operators", "read_rows", "unserved"]
