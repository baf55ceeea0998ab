"""What an API server would say: ownership, conflicts, validation, finalizers, watches."""
