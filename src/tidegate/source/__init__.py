"""Fetching of sources: a directory, a Git commit, a chart or an artifact, as a tree of files.

options = FetchOptions(cache=Cache(default_cache_root()))
snapshot = await fetch(GitSource("https://example.com/shop.git"), options)
"""

from tidegate.source.artifact_generator import compose_artifact, select_directories
from tidegate.source.cache import Cache, CacheEntryKind, CacheStats, default_cache_root
from tidegate.source.credentials import credentials_from_environment, credentials_from_secret
from tidegate.source.fetch import apply_ignore_rules, fetch, with_digest
from tidegate.source.ignore import ignores_manifests_by_default
from tidegate.source.local import find_checkouts, read_local_revision, read_repository_map
from tidegate.source.options import Checkout, FetchOptions
from tidegate.source.vendored import VendoredCharts
from tidegate.source.web import fetch_file

__all__ = [
    "Cache",
    "CacheEntryKind",
    "CacheStats",
    "Checkout",
    "FetchOptions",
    "VendoredCharts",
    "apply_ignore_rules",
    "compose_artifact",
    "credentials_from_environment",
    "credentials_from_secret",
    "default_cache_root",
    "fetch",
    "fetch_file",
    "find_checkouts",
    "ignores_manifests_by_default",
    "read_local_revision",
    "read_repository_map",
    "select_directories",
    "with_digest",
]
