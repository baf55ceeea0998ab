"""The programs of a control plane: how each is started, configured and stopped."""
