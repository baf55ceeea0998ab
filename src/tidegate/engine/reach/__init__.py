"""How the engine reaches clusters: errands through the door, and what is known of what lives."""
