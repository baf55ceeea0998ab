"""Workloads: Deployments and their ReplicaSets, StatefulSets, DaemonSets."""
