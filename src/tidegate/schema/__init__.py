"""What kinds are made of: shapes, where they come from, and whether an object fits."""
