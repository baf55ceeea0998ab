"""Table columns of `kubectl get`, as a real API server prints them for each kind."""
