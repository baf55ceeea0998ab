"""aiohttp, imported without loading the certificates of the system.

On import, aiohttp builds TLS contexts with the certificates of the system, which takes longer than
the rest of the import. All callers in this package pass their own context.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from ssl import get_default_verify_paths

CERTIFICATE_PATHS = get_default_verify_paths()


@contextmanager
def _no_certificates() -> Iterator[None]:
    """Point OpenSSL to empty certificate paths."""
    names = (CERTIFICATE_PATHS.openssl_cafile_env, CERTIFICATE_PATHS.openssl_capath_env)
    previous = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, os.devnull))
    try:
        yield
    finally:
        for name, value in previous.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


with _no_certificates():
    import aiohttp

__all__ = ["aiohttp"]
