"""Examples of the documentation, and which of them need a cluster."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
EXAMPLE = re.compile(r"(?<=```console\n)\$ (tidegate [^\n]*)\n(.*?)(?=```)", re.DOTALL)
ON_A_CLUSTER = "--context test"
"""Such an example is run on the real control plane."""
CHANGES = "examples/changes/"
"""Directories with a repository before a change and after it."""
GIT_IDENTITY = {
    f"GIT_{role}_{name}": value
    for role in ("AUTHOR", "COMMITTER")
    for name, value in (
        ("NAME", "Ann"),
        ("EMAIL", "ann@example.com"),
        ("DATE", "2026-01-01T00:00:00Z"),
    )
}
EXAMPLES = [(page, result[1]) for page in PAGES for result in EXAMPLE.finditer(page.read_text())]


def example_folder(command: str, folder: Path) -> Path:
    """Return the directory in which an example runs: this repository, or one with a change."""
    change = next((word for word in command.split() if word.startswith(CHANGES)), None)
    return ROOT if change is None else write_change(change, folder)


def write_change(change: str, folder: Path) -> Path:
    """Write a repository that has the change uncommitted. Return its directory."""
    repository = folder / "repository"
    shutil.copytree(ROOT / change / "base", repository / change)
    known = {"PATH": "/usr/bin:/bin", "HOME": str(folder), **GIT_IDENTITY}
    for words in (
        ("init", "--quiet", "--initial-branch=main"),
        ("add", "--all"),
        ("commit", "--quiet", "--message=Before the change"),
    ):
        subprocess.run(("/usr/bin/env", "git", *words), cwd=repository, env=known, check=True)
    shutil.rmtree(repository / change)
    shutil.copytree(ROOT / change / "head", repository / change)
    return repository
