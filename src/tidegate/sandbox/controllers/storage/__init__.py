"""Claims for storage, and the volumes that meet them."""
