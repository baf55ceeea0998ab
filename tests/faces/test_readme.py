"""What the documents show is what the program says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"(?<=```console\n\$ make demo\n)examples.*?(?=```)", re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def demo_without_a_control_plane(home: Path) -> str:
    """What a fresh machine shows, up to where a control plane would begin."""
    shown = subprocess.run(
        [sys.executable, "-m", "examples.demo"],
        cwd=ROOT,
        env={**os.environ, "XDG_CACHE_HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return shown[: shown.index("\nTo see the promises")]


def test_the_readme_shows_what_the_demo_prints(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    shown = demo_without_a_control_plane(tmp_path)
    if pytestconfig.getoption("--golden"):
        README.write_text(BLOCK.sub(lambda _: shown, README.read_text()))

    assert BLOCK.findall(README.read_text()) == [shown]


def test_the_readme_shows_the_product_on_its_first_screen() -> None:
    first_screen = README.read_text().splitlines()[:28]

    assert "$ make demo        # sets up and shows what works" in first_screen
    assert "$ make test        # sets up and runs every test that needs no cluster" in first_screen


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    broken = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]

    assert broken == []


def test_make_without_a_target_lists_them() -> None:
    listed = subprocess.run(
        ["make"],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    targets = {line.split()[0] for line in listed.splitlines()}
    assert targets >= {"setup", "demo", "test", "test-kube", "kube-up", "kube-down"}
    assert targets >= {"check", "fmt", "golden", "bench"}
