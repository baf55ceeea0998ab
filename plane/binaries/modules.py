"""Modules of Go, at pinned versions: what is read out of other people's source."""

from __future__ import annotations

import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import msgspec

from plane.binaries.build import cache_home, say_on_stderr
from plane.binaries.recipe import BUILD_ENVIRONMENT, read_recipe
from plane.binaries.toolchain import find_go
from plane.errors import PlaneError
from tidegate.errors import sanitize
from tidegate.model.k8s.json_fields import get_text
from tidegate.model.k8s.objects import Json


@cache
def fetch_module(module: str) -> Path:
    """Return the directory of `path@version`, and fetch it if necessary."""
    search = os.environ.get("PATH", os.defpath)
    go = find_go(read_recipe().go, directory=cache_home(), search=search, say=say_on_stderr)
    with tempfile.TemporaryDirectory() as nowhere:  # A module around us would have a say.
        ended = subprocess.run(
            [go, "mod", "download", "-json", module],
            capture_output=True,
            check=False,
            cwd=nowhere,
            env={**os.environ, **BUILD_ENVIRONMENT},
        )
    document: Json = msgspec.json.decode(ended.stdout or b"{}")
    if ended.returncode:
        problem = get_text(document, "Error") or ended.stderr.decode()
        raise PlaneError("plane.module", f"no module `{module}`: {sanitize(problem)}")
    return Path(get_text(document, "Dir"))
