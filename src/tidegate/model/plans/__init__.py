"""Plans, graphs and manifests."""
