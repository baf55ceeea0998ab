"""From rendered units to a plan and a graph."""
