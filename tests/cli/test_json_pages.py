"""What programs read is what the page on JSON says: no key that it does not name."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.documented_examples import write_change
from tests.support.in_process_command import run_in_process
from tests.support.served_cluster import served_cluster
from tidegate.documents import read_documents

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/json.md").read_text()
CASES = {
    "units": "units examples/platform",
    "waves": "waves examples/platform",
    "graph": "graph examples/platform",
    "lint": "lint examples/broken/cycle",
    "health": "health examples/first/app-service.yaml",
    "kinds": "kinds Certificate",
    "cache, doctor, version": "doctor",
    "plan": "plan examples/first",
    "sync": "sync examples/first --sandbox",
    "simulate": "simulate examples/homelab --engine native,argocd --offline",
    "rule": "rule ORD003",
    "sandbox run": "sandbox run examples/first",
}
OPEN = {"object", "params", "summary", "given"}
"""What is below these has keys of its own."""


def keys_of(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from keys_of(item)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            if key not in OPEN:
                yield from keys_of(inner)


def section(title: str) -> str:
    """A chapter of the page, with the first, which counts for all."""
    (text,) = (part for part in PAGE.split("\n## ") if part.startswith((f"{title}\n", f"{title},")))
    more = section("sync") if title == "simulate" else ""
    return text + PAGE.split("\n## ")[1] + more


def check(title: str, lines: str) -> None:
    """All keys are on the page, and all are written in one style."""
    matches = [json.loads(line) for line in lines.splitlines()]
    named = {*re.findall(r"`([\w.]+)`", section(title))}
    assert matches
    assert {*keys_of(matches)} - named == set()
    assert not [key for key in keys_of(matches) if not re.fullmatch(r"[a-z]+([A-Z][a-z]+)*", key)]


@pytest.mark.parametrize(("title", "words"), CASES.items(), ids=CASES)
def test_every_key_that_a_program_reads_is_on_the_page(
    title: str, words: str, tmp_path: Path
) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}

    ran = run_in_process(ROOT, environment, (*words.split(), "-o", "json"))

    check(title, ran.stdout)


@pytest.mark.parametrize("change", ["argocd", "flux", "both"])
def test_every_key_of_a_diff_is_on_the_page(change: str, tmp_path: Path) -> None:
    folder = write_change(f"examples/changes/{change}", tmp_path)

    ran = run_in_process(folder, dict(os.environ), ("diff", ".", "-o", "json"))

    document = json.loads(ran.stdout)
    findings = [*document.pop("newFindings"), *document.pop("fixedFindings")]
    check("diff", json.dumps(document))
    check("lint", json.dumps(findings))


async def test_every_key_of_a_live_status_is_on_the_page(tmp_path: Path) -> None:
    async with served_cluster(tmp_path) as cluster:
        shown = await cluster.run("status", ROOT / "examples" / "first", "-o", "json")

    check("status", shown.stdout)


def test_a_learned_profile_is_the_same_in_both_forms(tmp_path: Path) -> None:
    words = ("simulate", "learn", "examples/seen/dump.json")

    ran = run_in_process(ROOT, dict(os.environ), (*words, "-o", "json"))
    written = run_in_process(ROOT, dict(os.environ), words)

    assert json.loads(ran.stdout) == read_documents(written.stdout.encode(), "")[0].body
    assert {json.loads(line)["severity"] for line in ran.stderr.splitlines()} == {"note"}
    (tmp_path / "ours.json").write_text(ran.stdout)
    again = ("simulate", "examples/first", "--profile", str(tmp_path / "ours.json"))
    assert run_in_process(ROOT, dict(os.environ), again).code == 0


def test_render_errors_are_json(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text("apiVersion: v1\nkind: [\nmetadata:\n")
    (tmp_path / "none").mkdir()
    for place, code in (("web.yaml", 3), ("none", 0)):
        ran = run_in_process(tmp_path, dict(os.environ), ("render", place, "-o", "json"))

        assert ran.code == code
        assert [json.loads(line) for line in ran.stderr.splitlines()]
