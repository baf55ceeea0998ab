"""Releases in simulated clusters have their records, too: each try is a revision."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.releases import ChartRepository, config_map, hook
from tests.support.tidegate_runs import tidegate
from tidegate.model.k8s.objects import Json

FAILS = "behaviours: [{effect: fails, when: {kind: Job, name: migrate}}]\n"


@pytest.fixture
def shop(tmp_path: Path) -> ChartRepository:
    made = ChartRepository(tmp_path / "repository")
    made.put("values.yaml", "to: one\n")
    message = "'{{ .Release.Revision }} {{ .Release.IsUpgrade }}'"
    made.put("templates/web.yaml", config_map("web", to=message))
    made.put("templates/hook.yaml", hook("migrate", "post-install,post-upgrade"))
    return made


def histories(root: Path, *args: str) -> list[tuple[str, list[tuple[int, str, str]]]]:
    ran = tidegate("simulate", root, "--engine", "flux", "-o", "json", *args)
    ended = json.loads(ran.stdout.splitlines()[-1])
    return [
        (
            release["name"],
            [(it["number"], it["status"], it["description"]) for it in release["revisions"]],
        )
        for release in ended["releases"]
    ]


def scenario(tmp_path: Path, content: str) -> tuple[str, str]:
    file = tmp_path / "scenario.yaml"
    file.write_text(content)
    return "--scenario", str(file)


def test_an_install_is_a_revision(shop: ChartRepository) -> None:
    assert histories(shop.root) == [("web", [(1, "deployed", "Install complete")])]


def test_an_install_that_fails_is_uninstalled_and_tried_again(
    tmp_path: Path, shop: ChartRepository
) -> None:
    shop.release(install={"remediation": {"retries": 2, "remediateLastFailure": True}})

    assert histories(shop.root, *scenario(tmp_path, FAILS)) == [("web", [])]


def test_a_commit_with_another_chart_name_replaces_the_release(
    tmp_path: Path, shop: ChartRepository
) -> None:
    """What failed under the old name is uninstalled before the next try."""
    shop.release(install={"strategy": {"name": "RetryOnFailure", "retryInterval": "2m"}})
    chart = tmp_path / "newer" / "chart"
    chart.mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: till\nversion: 1.0.0\n")
    path = "chart/templates/hook.yaml"
    commit = f"commits: [{{at: 1m, files: newer, removes: [{path}]}}]\n"

    result = histories(shop.root, *scenario(tmp_path, FAILS + commit))

    assert ("web", [(1, "deployed", "Install complete")]) in result


def test_a_commit_during_the_simulation_upgrades_the_release_and_both_revisions_are_printed(
    wording: RecordedWording, tmp_path: Path, shop: ChartRepository
) -> None:
    """The hook fails; a commit without it comes before the next try."""
    retries: Json = {"strategy": {"name": "RetryOnFailure", "retryInterval": "2m"}}
    shop.release(install=retries)
    commit = "commits: [{at: 1m, removes: [chart/templates/hook.yaml]}]\n"
    args = scenario(tmp_path, FAILS + commit)

    ((name, revisions),) = histories(shop.root, *args)
    ran = tidegate("simulate", shop.root, "--engine", "flux", *args)

    assert name == "web"
    assert [revision[:2] for revision in revisions] == [(1, "failed"), (2, "deployed")]
    assert revisions[1][2] == "Upgrade complete"
    wording(line for line in ran.stdout.splitlines() if "1 failed, 2 deployed" in line)
