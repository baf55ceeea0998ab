"""How a rollout looks: events in, text out. Knows no terminal."""
