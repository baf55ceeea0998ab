"""What one turn of a rollout does: to the order of steps, to their objects, to their gates."""
