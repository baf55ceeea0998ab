"""Cache of rendered objects."""
