"""Operator knowledge as data rows: who serves a kind, what it needs and produces, when it is ready.

Pure functions of rows and objects, without access to a cluster.
"""
