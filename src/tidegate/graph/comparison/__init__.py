"""Comparison of two orders: of the units of a base revision, and of those of a head.

    diff = compare_orders(base, head)                   graph.comparison.compare

Both sides are values that were planned in the same way. Objects are paired by their identity, not
by files or by the numbers of waves.
"""
