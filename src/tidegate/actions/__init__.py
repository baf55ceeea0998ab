"""Use cases: one module per command, with the steps of the command in order."""
