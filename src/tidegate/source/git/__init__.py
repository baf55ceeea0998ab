"""Git: which commit a ref means, and the tree of the commit."""
