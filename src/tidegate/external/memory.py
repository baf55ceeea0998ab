"""A file that holds secrets, in memory where the system can, and without a name."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import IO


def hold(content: bytes) -> IO[bytes]:
    """An open file with this content, at its beginning. Closing it is the end of it."""
    file: IO[bytes]
    if sys.platform == "linux":
        file = os.fdopen(os.memfd_create("tidegate", os.MFD_CLOEXEC), "w+b")
    else:
        file = tempfile.TemporaryFile()  # noqa: SIM115  (the caller closes it)
    file.write(content)
    file.flush()
    file.seek(0)
    return file
