"""Plans: the steps of a rollout and their order, and the difference of desired and live objects."""
