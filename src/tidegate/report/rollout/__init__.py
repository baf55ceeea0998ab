"""Output of a rollout: events in, rows, lines and documents out; no terminal access."""
