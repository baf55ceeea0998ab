"""Status of Applications and ApplicationSets, as Argo CD writes it."""
