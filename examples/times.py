"""How long platforms take by the rules of their own engine and by ours: `python -m examples.times`.

Each is simulated with its own profile and scenario, in a copy with keys of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from examples.encrypt import KEY, encrypt_example
from examples.seal import seal_example
from tidegate.model.times import Ms, format_duration

EXAMPLES = Path(__file__).parent
OURS = "tidegate"
PASSED = "passed"
NOT_COPIED = shutil.ignore_patterns(".keys", "sealed.yaml", "*.enc.yaml")
HEADS = ("platform", "its own rules", "take", f"{OURS}'s take", "tried again")


@dataclass(frozen=True, slots=True)
class Staged:
    """A platform, whose rules it is written for, and what its simulation is given."""

    name: str
    engine: str
    profile: str
    scenario: str = ""

    def words(self, root: Path) -> tuple[str, ...]:
        profile = ("--profile", str(root / "profiles" / f"{self.profile}.yaml"))
        scenario = ("--scenario", str(root / "scenarios" / f"{self.scenario}.yaml"))
        rules = ("--engine", f"{self.engine},{OURS}")
        return (str(root), *rules, *profile, *(scenario if self.scenario else ()))


PLATFORMS = (
    Staged("fineract", "argocd", "fresh-database"),
    Staged("homelab", "argocd", "household-line", "first-day"),
    Staged("ladder", "argocd", "first-day", "first-day"),
    Staged("layers", "flux", "fresh-cluster"),
)


class Played(NamedTuple):
    """How a rollout by one set of rules went, and how often something of it was tried again."""

    outcome: str
    lasted: Ms
    again: int

    def __str__(self) -> str:
        result = format_duration(Ms(round(self.lasted, -3)))
        return result if self.outcome == PASSED else f"{self.outcome} after {result}"


def stage(name: str, folder: Path) -> Path:
    """A copy of a platform whose secrets are made for it."""
    root = Path(shutil.copytree(EXAMPLES / name, folder / name, ignore=NOT_COPIED))
    if name == "fineract":
        seal_example(root)
    if name == "layers":
        encrypt_example(root)
    return root


def play(platform: Staged, root: Path) -> dict[str, Played]:
    """By rules, how it went. Raises where it could not even be tried."""
    key = {"SOPS_AGE_KEY_FILE": str(root / KEY)} if (root / KEY).exists() else {}
    ran = subprocess.run(
        [sys.executable, "-m", "tidegate", "simulate", *platform.words(root), "-o", "json"],
        env=os.environ | key,
        capture_output=True,
        text=True,
        check=False,
    )
    messages = [json.loads(line) for line in ran.stdout.splitlines()]
    again = [item["engine"] for item in messages if item["event"] == "retry.scheduled"]
    by_name = {
        item["engine"]: Played(item["outcome"], Ms(item["duration"]), again.count(item["engine"]))
        for item in messages
        if item["event"] == "engine.finished"
    }
    if by_name.keys() != {platform.engine, OURS}:
        raise RuntimeError(ran.stderr)
    return by_name


def row_of(platform: Staged, played: dict[str, Played]) -> tuple[str, ...]:
    unit_resource, ours = played[platform.engine], played[OURS]
    again = f"{unit_resource.again}, {ours.again}" if unit_resource.again or ours.again else "-"
    return platform.name, platform.engine, str(unit_resource), str(ours), again


def table_lines(rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Text to the left, times to the right."""
    shown = [HEADS, *rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        cells = [
            text.ljust(width) if place < HEADS.index("take") else text.rjust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "   ".join(cells)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            row_of(platform, play(platform, stage(platform.name, Path(folder))))
            for platform in PLATFORMS
        ]
    for line in table_lines(rows):
        print(line)


if __name__ == "__main__":
    main()
