"""What a scheduler and a kubelet would do with pods. Assumed: no cluster vouches for it."""
