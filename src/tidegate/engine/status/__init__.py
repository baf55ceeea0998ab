"""Status of unit resources while a rollout runs."""
