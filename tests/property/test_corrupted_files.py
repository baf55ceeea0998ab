"""Whatever is wrong with a repository, commands say so: none of them ends in a bug of ours."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.file_corruption import is_text, spoil
from tests.support.in_process_command import CommandOutput, run_in_process
from tests.support.random_repositories import sound_repository
from tests.support.rollout_cases import shared_by
from tests.support.rule_pages import write_files
from tests.support.tidegate_runs import ROOT

LARGEST = 60_000
"""Bytes of a repository that is spoilt: what is larger says no more, and takes longer."""
PLACES = (
    "tests/conformance/repositories/cases",
    "examples",
    "examples/broken",
    "tests/conformance/repositories/public/cases",
)
CODES = frozenset({0, 2, 3, 4, 5, 8, 9, 10})
"""Every way to end but a bug, an interruption, or a reader that has gone."""
VERBS = {
    "lint": "lint . | lint . --empty-cluster | lint . -o sarif | lint . -o json",
    "graph": "graph . | graph . -o json | graph . -o mermaid | graph . -o dot",
    "critical path": "graph . --critical-path | graph . --critical-path -o json",
    "why": "graph . --why NAME OTHER | trace KIND NAME | trace KIND NAME -o json",
    "waves": "waves . | waves . -o json | units . --objects | units . -o json",
    "render": "render . | render FILE | render . -f FILE | render . --origins -o json",
    "plan": "plan . | plan FILE | plan . -o json | plan . --unit NAME | plan . -n NAME",
    "simulate": "simulate . | simulate . --engine argocd | simulate . --engine flux",
    "all engines": "simulate . --engine argocd,flux,tidegate -o json | simulate . --empty-cluster",
    "sync": "sync . --sandbox | sync . --sandbox -o json | sync . --sandbox --prune --logs",
    "delete": "delete . --sandbox | sandbox run FILE | sandbox run . -o json",
    "flux": "build ks --all | build hr NAME | diff ks --all | get all -A | tree ks NAME",
    "argocd": "app list | app get NAME | app manifests --all | app diff --all | tree app NAME",
    "sets": "appset generate FILE | appset generate FILE --params | units . --root NAME",
    "health": "health FILE | health FILE -o json | config . | config . -o json | verify .",
    "options": "simulate . --scenario FILE | simulate . --profile FILE | lint . --config FILE",
    "rules": "plan . --health-rules FILE | plan . --ignore-differences FILE | verify FILE",
    "learn": "profile learn FILE | simulate . --operator-defs FILE | plan . --generator-data FILE",
}
"""Commands that need no cluster; which one is drawn, and whom it names."""
OFFLINE = frozenset({"lint", "graph", "waves", "render", "plan", "simulate", "sync"})


def repositories() -> list[Path]:
    """What is here, as strangers would have it, as far as it is small."""
    among = [path for place in PLACES for path in sorted((ROOT / place).iterdir()) if path.is_dir()]
    return [item for item in among if 0 < _size(item) < LARGEST]


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


REPOSITORIES = repositories()
ANCHOR = "apiVersion: v1\nkind: ConfigMap\nmetadata: &me {name: web}\ndata: *me\n"
CIRCLE = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {0}\n  annotations:\n"
    "    tidegate.dev/depends-on: /namespaces/default/ConfigMap/{1}\n"
)
SMALLEST: tuple[dict[str, str], ...] = (
    {},
    {"readme.txt": "no manifest\n"},
    {"web.yaml": ANCHOR},
    {"a.yaml": CIRCLE.format("a", "b"), "b.yaml": CIRCLE.format("b", "a")},
    {"Chart.yaml": "name: web\n", "templates/web.yaml": "{{ .Values.x.y }}\n"},
    {"kustomization.yaml": "resources: [../base, https://git.example.com/a.git//b]\n"},
)


def make_repository(folder: Path, dice: random.Random) -> list[str]:
    """One with a few mistakes in it. Gives these."""
    folder.mkdir()
    kind = dice.random()
    if kind < 0.2:
        write_files(folder, sound_repository(dice).files())
    elif kind < 0.3:
        write_files(folder, dice.choice(SMALLEST))
    else:
        shutil.copytree(dice.choice(REPOSITORIES), folder, symlinks=True, dirs_exist_ok=True)
    return [spoil(folder, dice) for _ in range(dice.choice((1, 1, 1, 2, 4)))]


def command_of(pattern: str, folder: Path, dice: random.Random) -> tuple[str, ...]:
    """A command with words of the repository in it."""
    files = [path for path in sorted(folder.rglob("*")) if is_text(path)]
    text = "".join(file.read_bytes().decode(errors="replace") for file in files)
    words = {
        "FILE": [str(file.relative_to(folder)) for file in files] or ["."],
        "KIND": re.findall(r"kind: (\w+)", text) or ["Job"],
        "NAME": re.findall(r"name: ([\w-]+)", text) or ["web"],
    }
    words["OTHER"] = words["NAME"]
    command = pattern.strip().split()
    more = ["--offline"] if command[0] in OFFLINE else []
    return (*(dice.choice(words.get(item, [item])) for item in command), *more)


def refuse_bug(ran: CommandOutput, result: object) -> None:
    assert "Traceback" not in ran.stderr, (result, ran.stderr)
    assert "error[bug]" not in ran.stderr, result
    assert ran.code in CODES, (result, ran)


@pytest.mark.parametrize("group", VERBS)
@shared_by(20)
@given(seed=st.integers(0, 2**32))
def test_no_corrupted_file_causes_a_bug(group: str, seed: int) -> None:
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as above:
        environment = {"HOME": above, "PATH": os.environ["PATH"]}
        folder = Path(above) / "repo"
        mutations = make_repository(folder, dice)
        command = command_of(dice.choice(VERBS[group].split("|")), folder, dice)

        ran = run_in_process(folder, environment, command)

    refuse_bug(ran, (seed, command, mutations))
    if "json" in command:
        assert all(map(json.loads, ran.stderr.splitlines())), (seed, command, mutations)
