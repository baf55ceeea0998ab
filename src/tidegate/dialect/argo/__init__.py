"""Argo CD: Applications and their sources, projects, waves, hooks, sync options and differences."""
