"""Changes of a plan: prune, delete, rerun, selective sync."""
