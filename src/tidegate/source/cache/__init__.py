"""Trees, texts and rendered objects that were had before, for every process at once.

    trees/<digest>/tree     the files, never changed again
    trees/<digest>/lock     held, shared, by every process that uses the tree
    notes/<name>            which tree a commit or chart is; what a remote said last
    renders/<name>          objects that were rendered
    making/…                what is not complete yet

Nothing ever waits for another process. A tree is made beside the others and moved to its place in
one step; who comes second throws his own away. When the cache is over its limit, what was used
least recently goes, unless somebody holds its lock.
"""

from tidegate.source.cache.cache import Cache, default_cache_root
from tidegate.source.cache.entries import CachedTree, CacheEntryKind, CacheStats
from tidegate.source.cache.trees import Fill

__all__ = ["Cache", "CacheEntryKind", "CacheStats", "CachedTree", "Fill", "default_cache_root"]
