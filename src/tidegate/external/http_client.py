"""aiohttp, without the certificates that it reads when it is imported.

It makes contexts of the machine's own certificates then, for callers who bring none, and that takes
longer than the rest of it. Whoever talks over TLS here brings a context.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from ssl import get_default_verify_paths

PATHS = get_default_verify_paths()


@contextmanager
def _no_certificates() -> Iterator[None]:
    """Where OpenSSL is told to look for certificates, there are none."""
    names = (PATHS.openssl_cafile_env, PATHS.openssl_capath_env)
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, os.devnull))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


with _no_certificates():
    import aiohttp

__all__ = ["aiohttp"]
