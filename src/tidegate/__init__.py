"""Tidegate proves, previews and rolls out the order of a GitOps repository."""
