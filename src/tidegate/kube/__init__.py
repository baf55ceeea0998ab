"""Real API servers behind the door."""
