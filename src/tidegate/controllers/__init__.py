"""A running Argo CD or Flux: take over, pause, resume and ask it."""
