"""The programs of the control plane: what they are made of, and making them."""
