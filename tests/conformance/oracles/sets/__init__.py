"""What the real Argo CD generates of some hundred sets, to be compared with what we do."""
