"""Meaning: what the annotations and custom resources of Argo CD and Flux ask for."""
