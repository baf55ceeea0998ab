"""`diff` of random repositories: harmless changes keep the order, and each mistake has its line."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.support.changed_repository import ChangedRepository, DiffDocument, changed_repository
from tests.support.manifest_texts import URL
from tests.support.random_repositories import sound_repository
from tests.support.rollout_cases import EXAMPLES
from tests.support.tidegate_runs import tidegate

SEEDS = range(max(1, EXAMPLES // 50))
WAVE = re.compile(r'sync-wave: "(-?\d+)"')
FLUX = "Kustomization/flux-system/"
Files = dict[str, str]


def reformat(text: str) -> str:
    """Return the same documents in another style, with other line breaks and order of keys."""
    return yaml.safe_dump_all(yaml.safe_load_all(text), explicit_start=True, width=40)


def reorder(text: str) -> str:
    return "\n---\n".join(reversed(text.split("\n---\n")))


def renumber(text: str) -> str:
    return WAVE.sub(lambda wave: f'sync-wave: "{int(wave[1]) * 7 - 3}"', text)


def comment_on(text: str) -> str:
    return "# Reviewed.\n\n" + text.replace("\nspec:", "\n# What is wanted.\nspec:")


HARMLESS: dict[str, Callable[[Files], Files]] = {
    "nothing": lambda files: files,
    "files renamed": lambda files: {
        name.replace(".yaml", "-moved.yaml"): text for name, text in files.items()
    },
    "documents reordered": lambda files: {name: reorder(text) for name, text in files.items()},
    "YAML reformatted": lambda files: {name: reformat(text) for name, text in files.items()},
    "comments added": lambda files: {name: comment_on(text) for name, text in files.items()},
    "waves renumbered": lambda files: {name: renumber(text) for name, text in files.items()},
    "all of it": lambda files: {
        name.replace(".yaml", "-moved.yaml"): reformat(renumber(reorder(text)))
        for name, text in files.items()
    },
}


def random_repository(seed: int, root: Path) -> tuple[Files, ChangedRepository]:
    """Return a repository whose Application follows its branch."""
    generated = sound_repository(random.Random(seed)).files()
    files = {name: text.replace(": v1.0.0", ": main") for name, text in generated.items()}
    return files, changed_repository(root, files, url=URL)


def replace_files(repository: ChangedRepository, old: Files, new: Files) -> None:
    for name in old.keys() - new.keys():
        repository.remove(name)
    for name, text in new.items():
        repository.write(name, text)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_harmless_change_keeps_the_order_of_a_random_repository(
    seed: int, tmp_path: Path
) -> None:
    files, repository = random_repository(seed, tmp_path / "fleet")
    current = files
    for name, change in HARMLESS.items():
        changed = change(files)
        replace_files(repository, current, changed)
        current = changed

        ran = tidegate("diff", repository.root, "--offline", "--exit-code")

        assert ran.returncode == 0, (name, ran.stdout, ran.stderr)
        assert len(ran.stdout.splitlines()) == 1, (name, ran.stdout)


class Mistake(NamedTuple):
    """A change of one file of a random repository, and where it must be reported."""

    name: str
    file: str
    text: str | None
    section: str
    expected: Mapping[str, object]
    line: int = 0
    """The line that must be named; 0 for any line of the file."""


def mistakes_in(files: Files) -> list[Mistake]:
    """Return every mistake that these files allow."""
    mistakes: list[Mistake] = []
    for file, text in files.items():
        unit = FLUX + Path(file).stem
        if "kind: Kustomization" in text:
            mistakes += _unit_mistakes(file, text, unit)
        elif file.startswith("shop/"):
            mistakes += _object_mistakes(file, text, files)
    return mistakes


def _unit_mistakes(file: str, text: str, unit: str) -> list[Mistake]:
    suspended = text.replace("  prune: true\n", "  prune: true\n  suspend: true\n")
    lost = {"change": "removed", "unit": unit}
    suspension = suspended[: suspended.index("suspend:")].count("\n") + 1
    mistakes = [
        Mistake("unit deleted", file, None, "unit_changes", lost, 1),
        Mistake(
            "unit suspended",
            file,
            suspended,
            "gates",
            {**lost, "type": "reconciliation"},
            suspension,
        ),
    ]
    if "wait: true" in text:
        expected = {**lost, "type": "wait"}
        mistakes.append(
            Mistake("wait dropped", file, text.replace("  wait: true\n", ""), "gates", expected)
        )
    if "  dependsOn:" in text:
        expected = {**lost, "type": "dependsOn"}
        changed = re.sub(r"  dependsOn: .*\n", "", text)
        mistakes.append(Mistake("dependsOn dropped", file, changed, "gates", expected))
    return mistakes


def _object_mistakes(file: str, text: str, files: Files) -> list[Mistake]:
    documents = text.split("\n---\n")
    if len(documents) != 1:
        return []
    body = yaml.safe_load(text)
    name = f"{body['kind']} {body['metadata'].get('namespace', '')}/{body['metadata']['name']}"
    line = text[: text.index("annotations:")].count("\n") + 1
    mistakes: list[Mistake] = []
    if "hook:" in text:
        lost = {"change": "removed", "type": "hook", "subject": name}
        mistakes.append(Mistake("hook deleted", file, None, "gates", lost))
    if "hook: PreSync" in text:
        changed = text.replace("hook: PreSync", "hook: PostSync")
        moved = {"name": name, "before": _phase("PreSync", text), "after": _phase("PostSync", text)}
        mistakes.append(Mistake("phase changed", file, changed, "moved", moved, line))
    waves = [
        int(wave[1])
        for other, other_text in files.items()
        if other.startswith("shop/") and other != file and "hook: P" not in other_text
        for wave in WAVE.finditer(other_text)
    ]
    (wave,) = WAVE.findall(text)
    # Argo CD applies a CRD before its custom resources in any wave (gitops-engine sync_tasks.go).
    is_kept = "hook: P" in text or "kind: CustomResourceDefinition" in text
    if not is_kept and max(waves, default=-1) >= int(wave):
        changed = WAVE.sub('sync-wave: "50"', text)
        display = name.replace(" /", " ")
        moved = {"name": display, "before": f"wave {wave}", "after": "wave 50"}
        mistakes.append(Mistake("moved to the end", file, changed, "moved", moved, line))
    return mistakes


def _phase(phase: str, text: str) -> str:
    (wave,) = WAVE.findall(text)
    return phase if wave == "0" else f"{phase} wave {wave}"


@pytest.mark.parametrize("seed", range(max(1, EXAMPLES // 10)))
def test_a_mistake_in_a_random_repository_is_reported_with_its_line(
    seed: int, tmp_path: Path
) -> None:
    files, repository = random_repository(seed, tmp_path / "fleet")
    mistakes = mistakes_in(files)
    for mistake in random.Random(seed).sample(mistakes, min(3, len(mistakes))):
        if mistake.text is None:
            repository.remove(mistake.file)
        else:
            repository.write(mistake.file, mistake.text)

        document = repository.diff("--exit-code")
        repository.write(mistake.file, files[mistake.file])

        assert repository.code in {3, 10}, (mistake, document)
        matches = [
            entry
            for entry in entries_of(document, mistake.section)
            if all(getattr(entry, name) == value for name, value in mistake.expected.items())
        ]
        assert matches, (mistake, document)
        place = str(getattr(matches[0], "location"))  # noqa: B009 - of any section
        if mistake.text is not None or mistake.section == "unit_changes":
            assert place.startswith(f"{mistake.file}:{mistake.line or ''}"), (mistake, place)


def entries_of(document: DiffDocument, section: str) -> list[object]:
    return list(getattr(document.order, section))
