"""Commands, each in its own process.

If not said otherwise, that is where the files are: in the directory that is named, or at the root
of this repository, where its examples are.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.warm_start import WarmRun, may_be_warm

ROOT = Path(__file__).parents[2]
FIRST = "examples/first"


def tidegate(
    *words: str | Path, given: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Standard output is a pipe, and nothing of our own environment but the path is known."""
    return tidegate_in(_where_files_are(words), *words, given=given, **environment)


def _where_files_are(words: tuple[str | Path, ...]) -> Path:
    paths = [Path(word) for word in words]
    if any((ROOT / path).exists() for path in paths if not path.is_absolute()):
        return ROOT
    folders = (path if path.is_dir() else path.parent for path in paths if path.is_absolute())
    return next((folder for folder in folders if folder.is_dir()), ROOT)


def tidegate_in(
    folder: Path, *words: str | Path, given: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """The same, typed in another directory. `given`: what is piped in."""
    result = [*map(str, words)]
    known = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **environment}
    if may_be_warm(environment):
        return WarmRun(result, folder, known, given).to_its_end()
    return subprocess.run(
        [sys.executable, "-m", "tidegate", *result],
        cwd=folder,
        env=known,
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )


def write_unit(folder: Path, **files: str) -> Path:
    """A directory with manifests, by the names of their files without the ending."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


def config_map(name: str = "web", *, wave: str = "", namespace: str = "") -> str:
    notes = f'  annotations: {{argocd.argoproj.io/sync-wave: "{wave}"}}\n' if wave else ""
    place = f"  namespace: {namespace}\n" if namespace else ""
    return (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n{place}{notes}"
        "data: {colour: blue}\n"
    )


def kubeconfig(folder: Path, server: str) -> Path:
    """For a server that need not be one."""
    path = folder / "kubeconfig"
    path.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
        f"clusters: [{{name: a, cluster: {{server: '{server}'}}}}]\n"
        "users: [{name: a, user: {token: x}}]\n"
        "contexts: [{name: a, context: {cluster: a, user: a}}]\n"
    )
    return path
