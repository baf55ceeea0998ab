"""Argo CD, Flux and Helm: custom resources and annotations as units, policies and statuses."""
