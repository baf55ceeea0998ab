"""`tidegate lint` reports every deadlock of a repository in one run."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.support.in_process_command import run_in_process
from tests.support.manifest_texts import (
    SOURCE,
    application,
    config_map,
    kustomization,
    notes,
    pods,
)
from tests.support.rule_pages import write_files


def deadlocks(folder: Path) -> list[str]:
    """The file and line of each error."""
    ran = run_in_process(folder, os.environ, ("lint", "--offline", "-o", "json", "."))
    return [
        finding["file"]
        for finding in json.loads(ran.stdout)["findings"]
        if finding["severity"] == "error"
    ]


def test_a_deadlock_after_another_one_is_also_reported(tmp_path: Path) -> None:
    files = {
        "shop/one.yaml": pods("Deployment", "one", notes(0), maps=("first",)),
        "shop/two.yaml": pods("Deployment", "two", notes(1), maps=("second",)),
        "shop/three.yaml": pods("Deployment", "three", notes(2), maps=("third",)),
        "shop/first.yaml": config_map("first", notes(5)),
        "shop/second.yaml": config_map("second", notes(6)),
        "shop/third.yaml": config_map("third", notes(0)),
    }
    write_files(tmp_path, {"app.yaml": application(), **files})

    assert deadlocks(tmp_path) == ["shop/one.yaml", "shop/two.yaml"]


def test_a_deadlock_in_a_unit_that_never_starts_is_reported_too(tmp_path: Path) -> None:
    """`data` waits for a ConfigMap of `apps`; the same mistake is between `apps` and `extras`."""
    files = {
        "clusters/source.yaml": SOURCE,
        "clusters/units.yaml": "---\n".join(
            (
                kustomization("data", wait=True),
                kustomization("apps", "data", wait=True),
                kustomization("extras", "apps"),
            )
        ),
        "data/db.yaml": pods("Deployment", "db", maps=("web",), inside="default"),
        "apps/web.yaml": pods("Deployment", "web", maps=("extra",), inside="default"),
        "apps/settings.yaml": config_map("web", inside="default"),
        "extras/settings.yaml": config_map("extra", inside="default"),
    }
    write_files(tmp_path, files)

    assert deadlocks(tmp_path) == ["apps/web.yaml", "data/db.yaml"]


def test_a_resolved_deadlock_leaves_the_other_one(tmp_path: Path) -> None:
    files = {
        "shop/one.yaml": pods("Deployment", "one", notes(0), maps=("first",)),
        "shop/two.yaml": pods("Deployment", "two", notes(1), maps=("second",)),
        "shop/first.yaml": config_map("first", notes(-1)),
        "shop/second.yaml": config_map("second", notes(6)),
    }
    write_files(tmp_path, {"app.yaml": application(), **files})

    assert deadlocks(tmp_path) == ["shop/two.yaml"]
