"""Simulated scheduler and kubelet. Their behavior is assumed, not recorded from a cluster."""
