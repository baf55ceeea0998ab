"""OCI registries: tags, manifests and layers."""
