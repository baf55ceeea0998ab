"""Records of units in a cluster: lease, journal, approvals, peers."""
