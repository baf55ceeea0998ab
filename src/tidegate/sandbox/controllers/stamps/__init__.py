"""Statuses that somebody outside the cluster's own workloads writes, after a while."""
