"""Text helpers: lazily compiled patterns, suggestions."""
