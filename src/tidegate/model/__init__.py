"""Domain model: immutable values and pure functions on them."""
