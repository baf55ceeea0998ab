"""What the objects of a real cluster tell of how long things take there, as a profile."""
