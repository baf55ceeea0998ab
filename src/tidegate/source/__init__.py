"""Gets a tree of files: a directory, a Git commit, a chart or an artifact.

access = Access(cache=Cache(default_cache_root()))
snapshot = await fetch(GitSource("https://example.com/shop.git"), access)
"""

from tidegate.source.artifact_generator import keep_directories, put_together
from tidegate.source.cache import Cache, Holding, Kept, default_cache_root
from tidegate.source.credentials import keyring_of, keyring_of_secret
from tidegate.source.fetch import fetch, leave_out, with_digest
from tidegate.source.ignore import leaves_out_texts
from tidegate.source.local import find_checkouts, read_head, read_repository_map
from tidegate.source.options import Access, Checkout
from tidegate.source.vendored import VendoredCharts
from tidegate.source.web import fetch_file

__all__ = [
    "Access",
    "Cache",
    "Checkout",
    "Holding",
    "Kept",
    "VendoredCharts",
    "default_cache_root",
    "fetch",
    "fetch_file",
    "find_checkouts",
    "keep_directories",
    "keyring_of",
    "keyring_of_secret",
    "leave_out",
    "leaves_out_texts",
    "put_together",
    "read_head",
    "read_repository_map",
    "with_digest",
]
