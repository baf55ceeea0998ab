"""What Helm keeps in a cluster, and how it reads what others keep there."""
