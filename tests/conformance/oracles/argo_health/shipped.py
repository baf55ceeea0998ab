"""The scripts that Argo CD ships, and what their own tests say, in its Go module."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from plane.binaries.modules import fetch_module
from tidegate.documents import read_documents
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json

HERE = Path(__file__).parent
PATTERNS = HERE.parents[2] / "data" / "health" / "argo-scripts.txt"
"""Which kinds have scripts, one a line: `group/kind`, `*` for any text."""


def folder() -> Path:
    """Where the scripts lie, fetched if need be."""
    required = re.search(r"(\S+/argo-cd/v3) (v\S+)", (HERE / "go.mod").read_text())
    assert required
    return fetch_module(f"{required[1]}@{required[2]}") / "resource_customizations"


def patterns(scripts: Path) -> list[str]:
    matches = (file.parent.relative_to(scripts).as_posix() for file in scripts.rglob("health.lua"))
    return sorted(re.sub(r"(^|/)_", r"\1*", pattern) for pattern in matches)


def cases(scripts: Path, pattern: str) -> Iterator[tuple[str, dict[str, Json], str]]:
    """The name, the body and the state of each of a script's own tests.

    Scripts are tested alone. Argo CD itself says Progressing of a deletion before it asks them.
    """
    place = scripts / pattern.replace("*", "_")
    (tests,) = read_documents((place / "health_test.yaml").read_bytes(), pattern)
    for test in get_mappings(tests.body, "tests"):
        case: dict[str, Json] = {key.lower(): value for key, value in test.items()}
        name = get_text(case, "inputpath")
        body = read_documents((place / name).read_bytes(), name)[0].body
        state = get_text(case, "healthstatus", "status", default="Unknown")
        if state != "Progressing":
            get_mapping(body, "metadata").pop("deletionTimestamp", None)
        yield name, body, state
