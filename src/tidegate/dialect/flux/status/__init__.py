"""Status of Kustomizations and HelmReleases, as Flux writes it."""
