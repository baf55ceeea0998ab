"""The Helm worker process: the Helm SDK and what it needs."""
