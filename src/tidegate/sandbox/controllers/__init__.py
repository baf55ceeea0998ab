"""What kube-controller-manager would do, kind by kind."""
