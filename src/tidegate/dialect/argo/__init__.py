"""Argo CD's words: Applications and their sources, waves, hooks, options, ignored differences."""
