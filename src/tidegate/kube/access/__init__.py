"""What kubeconfig files say, read with care, and what it comes down to."""
