"""Display of a rollout: terminal, live view, lines and JSON."""
