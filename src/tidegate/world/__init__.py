"""The door: calls, facts, and what stands above every world alike."""
