"""Read-only views: diff, status, tree, trace, events, logs, waves, verification."""
