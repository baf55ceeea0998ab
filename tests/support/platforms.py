"""The example platforms with their keys, which are not in Git."""

from __future__ import annotations

import shutil
from pathlib import Path

from examples.encrypt import KEY, encrypt_example
from examples.seal import seal_example
from tests.support.in_process_cli import CommandResult, type_in
from tests.support.tidegate_runs import ROOT
from tidegate.documents import read_documents
from tidegate.model.k8s.json_fields import get_mapping, get_mappings
from tidegate.model.k8s.objects import JsonObject

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


def given_objects(name: str) -> tuple[list[JsonObject], JsonObject]:
    """The objects that the cluster of a platform has, and the names of others by kind."""
    scenario = SCENARIOS.get(name)
    if scenario is None:
        return [], {}
    file = ROOT / "examples" / name / "scenarios" / f"{scenario}.yaml"
    (document,) = read_documents(file.read_bytes(), file.name)
    given = get_mapping(document.body, "given")
    return get_mappings(given, "objects"), get_mapping(given, "names")


def type_among(folder: Path, *words: str) -> CommandResult:
    """Run a command in the directory of the platforms, with the decryption key."""
    key = folder / "layers" / KEY
    unit_resource = {"SOPS_AGE_KEY_FILE": str(key)} if key.exists() else {}
    return type_in(*words, folder=folder, **unit_resource)
