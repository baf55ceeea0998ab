"""Lint rules by subject. A module registers its rules when it is imported."""
