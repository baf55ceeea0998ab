"""Kubernetes objects and their fields."""
