"""From what Git says to what is to be done, and how that differs from what lives."""
