"""Access to real clusters: kubeconfig, credentials, HTTP and the World of real API servers."""
