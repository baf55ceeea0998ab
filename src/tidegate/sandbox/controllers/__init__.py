"""Controllers of kube-controller-manager, by kind."""
