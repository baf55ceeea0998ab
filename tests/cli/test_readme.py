"""The README and the Makefile."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_readme_shows_the_product_on_its_first_screen() -> None:
    commands = [line for line in README.read_text().splitlines()[:36] if line.startswith("$ ")]

    assert [line.split()[1:3] for line in commands[:2]] == [["make", "demo"], ["make", "test"]]


def test_the_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) <= 120


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    broken = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]

    assert broken == []


def test_the_readme_leads_to_every_page() -> None:
    linked = {(ROOT / link).resolve() for link in LINK.findall(README.read_text())}
    indexes = [page for page in linked if page.name == "README.md" and page.is_file()]
    for index in indexes:
        linked |= {(index.parent / link).resolve() for link in LINK.findall(index.read_text())}

    unseen = [name_of(page) for page in PAGES if page != README and page not in linked]
    assert unseen == []


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
    assert targets >= {"check", "fmt", "golden", "bench", "properties"}
