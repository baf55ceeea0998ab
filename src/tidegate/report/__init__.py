"""Words: what happened, for people and for programs."""
