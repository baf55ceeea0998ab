"""Argo CD's words: waves, hooks, sync options, ignored differences."""
