"""Plans from units and manifests."""
