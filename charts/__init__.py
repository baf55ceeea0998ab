"""Helm charts, and what makes their tables, schemas and copies: `python -m charts`."""
