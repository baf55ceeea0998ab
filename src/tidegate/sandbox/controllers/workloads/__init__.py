"""Controllers of workloads: Deployments and their ReplicaSets, StatefulSets, DaemonSets."""
