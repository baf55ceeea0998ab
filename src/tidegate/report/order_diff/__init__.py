"""Differences between two orders as text, JSON and Markdown."""
