"""Linting: loads a repository, builds the context and runs the rules."""
