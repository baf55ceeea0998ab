"""A directory for what must not stay: in memory where the system can, for our eyes only."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = Path("/dev/shm")  # noqa: S108  (the one place Linux keeps in memory for everyone)


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """A new directory that nobody else may enter, and that is gone afterwards with all in it."""
    is_memory = sys.platform == "linux" and MEMORY.is_dir() and os.access(MEMORY, os.W_OK)
    # Only a kill leaves one behind; by its name one can tell whose it was.
    prefix = f"tidegate-{os.getpid()}-"
    path = Path(tempfile.mkdtemp(prefix=prefix, dir=MEMORY if is_memory else None))
    try:
        yield path
    finally:
        shutil.rmtree(path)
