"""Controllers of Argo CD and Flux: detection, pause, requests."""
