"""Kubeconfig files: loading, and the clusters, users and credentials that they define."""
