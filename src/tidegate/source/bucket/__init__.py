"""Buckets that speak as S3 does."""
