"""The example platforms with their keys, which are not in Git."""

from __future__ import annotations

import shutil
from pathlib import Path

from examples.encrypt import KEY, encrypt_example
from examples.seal import seal_example
from tests.support.in_process_cli import CommandResult, type_in
from tests.support.tidegate_runs import ROOT

PLATFORMS = ("fineract", "homelab", "ladder", "layers")
MAKERS = {"fineract": seal_example, "layers": encrypt_example}
"""Those with secrets, and what makes them anew."""
SCENARIOS = {"homelab": "first-day", "ladder": "first-day"}
"""Objects that a platform needs in the cluster and that are not in Git."""


def lay_out(folder: Path, *names: str) -> Path:
    """Copies of platforms, each with keys of its own."""
    ignored = shutil.ignore_patterns(".keys", "sealed.yaml", "*.enc.yaml")
    for name in names:
        shutil.copytree(ROOT / "examples" / name, folder / name, ignore=ignored)
        if name in MAKERS:
            MAKERS[name](folder / name)
    return folder


def given_for(name: str) -> tuple[str, ...]:
    """The words that say what the cluster of a platform has, from where the platforms are."""
    scenario = SCENARIOS.get(name)
    return ("--scenario", f"{name}/scenarios/{scenario}.yaml") if scenario else ()


def type_among(folder: Path, *words: str) -> CommandResult:
    """Run a command in the directory of the platforms, with the decryption key."""
    key = folder / "layers" / KEY
    unit_resource = {"SOPS_AGE_KEY_FILE": str(key)} if key.exists() else {}
    return type_in(*words, folder=folder, **unit_resource)
