"""Commits to the repositories of the status tests."""

from __future__ import annotations

import subprocess
from pathlib import Path


def commit(root: Path) -> str:
    """Commit all of a directory; which commit that is."""
    git = ("git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "all of it"], check=True)
    result = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return result.stdout.strip()
