"""Difference between a desired and a live object, and the ownership of fields."""
