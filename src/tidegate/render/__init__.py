"""Rendering of Helm charts, kustomize overlays, plain directories and Jsonnet."""
