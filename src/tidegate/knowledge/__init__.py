"""What is known of kinds, as rows: who serves them, what they need, make, and when they are ready.

Pure questions about rows and texts of objects. Nothing here looks at a cluster.
"""
