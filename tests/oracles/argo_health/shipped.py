"""The scripts that Argo CD ships, and what their own tests say, in the cache of Go modules."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from tidegate.documents import read
from tidegate.model.objects import Json
from tidegate.model.reading import mapping, mappings, text

HERE = Path(__file__).parent
PATTERNS = HERE.parents[1] / "data" / "health" / "argo-scripts.txt"
"""Which kinds have scripts, one a line: `group/kind`, `*` for any text."""


def folder() -> Path | None:
    """Where the scripts lie; None where nobody has fetched the module."""
    required = re.search(r"argo-cd/v3 (v\S+)", (HERE / "go.mod").read_text())
    version = required[1] if required else ""
    home = Path(os.environ.get("GOPATH") or Path.home() / "go")
    modules = Path(os.environ.get("GOMODCACHE") or home / "pkg" / "mod")
    found = modules / "github.com" / "argoproj" / "argo-cd" / f"v3@{version}"
    return found / "resource_customizations" if found.is_dir() else None


def patterns(scripts: Path) -> list[str]:
    found = (file.parent.relative_to(scripts).as_posix() for file in scripts.rglob("health.lua"))
    return sorted(re.sub(r"(^|/)_", r"\1*", pattern) for pattern in found)


def cases(scripts: Path, pattern: str) -> Iterator[tuple[str, dict[str, Json], str]]:
    """The name, the body and the state of each of a script's own tests.

    Scripts are tested alone. Argo CD itself says Progressing of a deletion before it asks them.
    """
    place = scripts / pattern.replace("*", "_")
    (tests,) = read((place / "health_test.yaml").read_bytes(), pattern)
    for one in mappings(tests.body, "tests"):
        case: dict[str, Json] = {key.lower(): value for key, value in one.items()}
        name = text(case, "inputpath")
        body = read((place / name).read_bytes(), name)[0].body
        state = text(case, "healthstatus", "status", default="Unknown")
        if state != "Progressing":
            mapping(body, "metadata").pop("deletionTimestamp", None)
        yield name, body, state
