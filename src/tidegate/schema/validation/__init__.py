"""What a server asks of objects beyond their types: CRDs, built-in kinds, names."""
