"""The rollout engine: runs a plan against a World and emits events."""
