"""Knowledge about operators, as data."""
