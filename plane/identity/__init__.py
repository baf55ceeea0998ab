"""Who is who on the control plane: certificates, tokens, kubeconfigs."""
