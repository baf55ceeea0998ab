"""Buckets of S3-compatible object storages."""
