"""Cache of trees, texts and rendered objects, shared by all processes of a user.

trees/<digest>/tree     the files, never changed again
    trees/<digest>/lock     locked, shared, by every process that uses the tree
    notes/<name>            digest of the tree of a commit or chart; last response of a remote
    renders/<name>          rendered objects
    making/…                incomplete entries

No process waits for another one. A tree is created in `making` and moved to its place in one step;
a process that comes second discards its own tree. When the cache exceeds its limit, the least
recently used entries are removed, except trees whose lock is held.
"""

from tidegate.source.cache.cache import Cache, default_cache_root
from tidegate.source.cache.entries import CachedTree, CacheEntryKind, CacheStats
from tidegate.source.cache.trees import Fill

__all__ = ["Cache", "CacheEntryKind", "CacheStats", "CachedTree", "Fill", "default_cache_root"]
