"""AppProjects on simulated clusters, from outside: what they refuse, and when they hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.projects import NIGHT, Ran, of_project, project, two_units, written
from tests.support.recorded_wording import RecordedWording
from tests.support.repositories import (
    URL,
    Repository,
    application,
    deployment,
    named,
    namespace,
    setting,
)
from tests.support.tidegate_runs import tidegate
from tidegate.model.k8s.objects import Json


def synced(repository: Repository, *args: str) -> Ran:
    return tidegate("sync", repository.root, "--sandbox", *args)


def line_of(repository: Repository, text: str, path: str = "projects/team.yaml") -> str:
    """`file:line` of the first line with this text."""
    lines = (repository.root / path).read_text().splitlines()
    return f"{path}:{next(at for at, line in enumerate(lines, 1) if text in line)}"


REFUSALS: dict[str, tuple[dict[str, Json], tuple[str, ...], str]] = {
    "source": (
        {"sourceRepos": ["https://elsewhere.example.com/*"]},
        ("`team`", f"`{URL}`", "`Application/argocd/web`"),
        "sourceRepos:",
    ),
    "a denied source": (
        {"sourceRepos": ["*", "!https://git.example.com/shop/*"]},
        ("`team`", f"`{URL}`", "`Application/argocd/web`"),
        "!https://git.example.com/shop/*",
    ),
    "destination": (
        {"destinations": [{"server": "*", "namespace": "prod-*"}]},
        ("`team`", "`shop`", "`in-cluster`"),
        "destinations:",
    ),
    "a denied cluster": (
        {"destinations": [{"server": "*", "namespace": "*"}, {"name": "!in-*", "namespace": "*"}]},
        ("`team`", "`shop`", "`in-cluster`"),
        'name: "!in-*"',
    ),
    "a kind in a namespace": (
        {"namespaceResourceBlacklist": [{"group": "", "kind": "ConfigMap"}]},
        ("`team`", "ConfigMap `web`", "`Application/argocd/web`"),
        '- group: ""',
    ),
    "no kinds": (
        {"namespaceResourceWhitelist": []},
        ("`team`", "ConfigMap `web`", "`Application/argocd/web`"),
        "namespaceResourceWhitelist:",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_an_object_that_a_project_forbids_is_rejected_with_the_rule_before_the_first_write(
    tmp_path: Path, name: str
) -> None:
    spec, names, rule = REFUSALS[name]
    repository = two_units(tmp_path, **spec)

    ran = synced(repository, "-o", "json")
    rest = synced(repository, "-o", "json", "--skip-broken")

    assert ran.returncode == 3
    findings = [json.loads(line) for line in ran.stderr.splitlines()]
    refusals = [
        finding
        for finding in findings
        if finding["code"] == "argo.project" and all(name in finding["message"] for name in names)
    ]
    assert refusals, ran.stderr
    assert all(refusal["location"].startswith("apps/web.yaml:") for refusal in refusals), refusals
    assert all(line_of(repository, rule) in refusal["why"] for refusal in refusals), refusals
    assert not written(ran) if ran.stdout else True
    assert written(rest) >= {"shop", "free"}
    assert not written(rest) & {"web", "web-late"}


def test_an_object_in_another_namespace_must_be_permitted_there(tmp_path: Path) -> None:
    repository = two_units(tmp_path, destinations=[{"server": "*", "namespace": "shop"}])
    repository.put("web/all.yaml", setting("web"), setting("stray", "kube-system"))

    ran = synced(repository)

    assert ran.returncode == 3
    assert any(
        "error[argo.project]" in line and "`kube-system`" in line and "`in-cluster`" in line
        for line in ran.stderr.splitlines()
    )
    assert "web/all.yaml:" in ran.stderr


def test_a_cluster_scoped_object_must_be_in_the_whitelist(
    wording: RecordedWording, tmp_path: Path
) -> None:
    repository = two_units(tmp_path, clusterResourceWhitelist=[])
    repository.put("web/all.yaml", setting("web"), namespace("more"))

    ran = synced(repository)

    assert ran.returncode == 3
    assert any(
        "error[argo.project]" in line and "`team`" in line and "Namespace `more`" in line
        for line in ran.stderr.splitlines()
    )
    wording(line for line in ran.stderr.splitlines() if "`clusterResourceWhitelist`" in line)


def test_a_namespace_that_is_to_be_made_must_be_allowed_unless_it_is_there(tmp_path: Path) -> None:
    repository = two_units(tmp_path, clusterResourceWhitelist=[])
    repository.put("apps/ground.yaml", setting("start", "argocd", wave=-1))
    makes: Json = {"automated": {}, "syncOptions": ["CreateNamespace=true"]}
    repository.put("apps/free.yaml", application("free", "free", into="default"))
    repository.put("apps/web.yaml", of_project("web", "web", syncPolicy=makes))
    scenario = tmp_path / "given.yaml"
    shop = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"
    scenario.write_text(f"given: {{objects: [{shop}]}}\n")

    missing = synced(repository)
    there = tidegate("sync", repository.root, "--sandbox", "--scenario", scenario)

    assert any(
        "error[argo.project]" in line and "`team`" in line and "Namespace `shop`" in line
        for line in missing.stderr.splitlines()
    )
    assert "argo.project" not in there.stderr


def test_an_application_must_be_in_a_source_namespace_of_its_project(tmp_path: Path) -> None:
    repository = two_units(tmp_path)
    misplaced = of_project("web", "web")
    repository.put("apps/web.yaml", {**misplaced, "metadata": named("web", "team-a")})
    refused = synced(repository)
    repository.put("projects/team.yaml", project(sourceNamespaces=["team-*"]))
    allowed = synced(repository)

    assert any(
        "error[argo.project]" in line and "`team-a`" in line and "`Application/team-a/web`" in line
        for line in refused.stderr.splitlines()
    )
    assert refused.returncode == 3
    assert "argo.project" not in allowed.stderr


@pytest.mark.parametrize("has_projects", [True, False])
def test_a_project_that_is_not_in_the_repository_is_reported_and_refuses_nothing(
    tmp_path: Path, *, has_projects: bool
) -> None:
    repository = two_units(tmp_path)
    repository.drop("projects/team.yaml")
    if has_projects:
        repository.put("projects/free.yaml", project("free"))
        repository.put("apps/free.yaml", of_project("free", "free", "free"))

    ran = synced(repository)

    assert ran.returncode == 0, ran.stderr
    severity = "warning" if has_projects else "note"
    assert any(
        f"{severity}[argo.project-missing]" in line
        and "`team`" in line
        and "`Application/argocd/web`" in line
        for line in ran.stderr.splitlines()
    )


def test_a_cluster_without_a_known_server_is_reported_if_the_server_is_needed(
    tmp_path: Path,
) -> None:
    east: Json = {"server": "https://east.example.com", "namespace": "*"}
    repository = two_units(tmp_path, destinations=[east])
    place: Json = {"name": "east", "namespace": "shop"}
    repository.put("apps/web.yaml", of_project("web", "web", destination=place))

    unsure = tidegate("simulate", repository.root)
    clusters = "clusters:\n  east: {context: east, server: https://east.example.com}\n"
    (tmp_path / "tidegate.yaml").write_text(clusters)
    sure = tidegate("simulate", repository.root)
    (tmp_path / "tidegate.yaml").write_text(clusters.replace("//east", "//west"))
    refused = tidegate("simulate", repository.root)

    assert any(
        "note[argo.project-unknown]" in line
        and "`team`" in line
        and "`Application/argocd/web`" in line
        for line in unsure.stderr.splitlines()
    )
    assert "argo.project" not in sure.stderr
    assert any(
        "error[argo.project]" in line and "`shop`" in line and "`east`" in line
        for line in refused.stderr.splitlines()
    )


def test_a_unit_that_its_project_forbids_is_not_synced_and_others_continue(tmp_path: Path) -> None:
    repository = two_units(tmp_path, namespaceResourceWhitelist=[])

    ran = tidegate("simulate", repository.root, "-o", "json")

    assert ran.returncode == 4
    assert written(ran) >= {"free"}
    assert "web" not in written(ran)


def test_a_closed_window_blocks_only_its_unit_until_it_opens(tmp_path: Path) -> None:
    repository = two_units(tmp_path, syncWindows=[NIGHT])

    ran = synced(repository, "--start", "2026-11-17T23:30:00Z")

    assert ran.returncode == 0, ran.stderr
    assert any(
        "warning[argo.window]" in line
        and "`Application/argocd/web`" in line
        and "2026-11-18 05:00:00 UTC" in line
        for line in ran.stderr.splitlines()
    )
    rule = "`0 22 * * *` Europe/Berlin"
    location = line_of(repository, "- applications:")
    assert any(
        rule in line and "`deny`" in line and location in line for line in ran.stderr.splitlines()
    )
    assert any(
        "2026-11-18 05:00:00 UTC" in line and "`deny`" in line and "`0 22 * * *`" in line
        for line in ran.stdout.splitlines()
    )
    free, held = (
        next(line for line in ran.stdout.splitlines() if f"ConfigMap shop/{name}" in line)
        for name in ("free", "web")
    )
    assert float(free.split("s")[0]) < 60
    assert float(held.split("s")[0]) == pytest.approx(5.5 * 3600, abs=1)


def test_an_open_window_holds_no_unit_and_the_time_of_the_check_is_reported(tmp_path: Path) -> None:
    repository = two_units(tmp_path, syncWindows=[NIGHT])

    ran = synced(repository, "--start", "2026-11-17T12:00:00Z")

    assert "argo.window]" not in ran.stderr
    assert any(
        "note[argo.window-time]" in line and "2026-11-17 12:00:00 UTC" in line
        for line in ran.stderr.splitlines()
    )


def test_a_scenario_sets_the_start_time_of_a_simulation(tmp_path: Path) -> None:
    repository = two_units(tmp_path / "repo", syncWindows=[NIGHT])
    scenario = tmp_path / "night.yaml"
    scenario.write_text("start: 2026-11-17T23:30:00+01:00\n")

    ran = tidegate("simulate", repository.root, "--scenario", scenario, "--until", "12h")
    scenario.write_text("start: soon\n")
    wrong = tidegate("simulate", repository.root, "--scenario", scenario)

    assert any(
        "note[argo.window-time]" in line and "2026-11-17 22:30:00 UTC" in line
        for line in ran.stderr.splitlines()
    )
    assert any(
        "warning[argo.window]" in line and "2026-11-18 05:00:00 UTC" in line
        for line in ran.stderr.splitlines()
    )
    assert any(
        "error[file.value]" in line and "`soon`" in line for line in wrong.stderr.splitlines()
    )
    assert wrong.returncode == 3


def test_a_window_that_lets_people_pass_holds_what_syncs_by_itself(tmp_path: Path) -> None:
    repository = two_units(tmp_path, syncWindows=[{**NIGHT, "manualSync": True}])
    night = ("--start", "2026-11-17T23:30:00Z")

    by_hand = synced(repository, *night)
    by_itself = tidegate("simulate", repository.root, "--until", "12h", *night)

    assert "argo.window]" not in by_hand.stderr
    assert any(
        "warning[argo.window]" in line and "2026-11-18 05:00:00 UTC" in line
        for line in by_itself.stderr.splitlines()
    )


def slow_start(repository: Repository) -> None:
    """A slow wave, and the next one."""
    repository.put("web/all.yaml", deployment("web"), setting("web-late", wave=1))


def test_a_window_that_closes_between_two_waves_holds_the_second_one(tmp_path: Path) -> None:
    repository = two_units(tmp_path / "held", syncWindows=[NIGHT])
    slow_start(repository)
    overrun = two_units(tmp_path / "on", syncWindows=[{**NIGHT, "syncOverrun": True}])
    slow_start(overrun)
    evening = ("--start", "2026-11-17T20:59:59.500Z", "-o", "json")

    held, goes_on = synced(repository, *evening), synced(overrun, *evening)

    def wait(ran: Ran) -> int:
        events = [json.loads(line) for line in ran.stdout.splitlines()]
        later = (event for event in events if event["event"] == "object.written")
        at = {item["name"]: item["at"] for item in later}
        assert at["web"] - events[0]["at"] < 2_000
        seconds: int = (at["web-late"] - at["web"]) // 1_000
        return seconds

    assert wait(held) > 8 * 3600 - 60
    assert wait(goes_on) < 60


def test_a_window_that_cannot_be_read_is_an_error_at_its_line(tmp_path: Path) -> None:
    wrong = {**NIGHT, "schedule": "@daily"}
    repository = two_units(tmp_path, syncWindows=[wrong, {**NIGHT, "duration": "soon"}])

    ran = synced(repository)

    assert ran.returncode == 3
    assert any(
        "error[argo.project-invalid]" in line and "`@daily`" in line
        for line in ran.stderr.splitlines()
    )
    assert any(
        "error[argo.project-invalid]" in line and "`soon`" in line
        for line in ran.stderr.splitlines()
    )
    assert f"at {line_of(repository, '- applications:')}" in ran.stderr


def test_a_window_that_never_opens_is_an_error_and_its_unit_is_left_out(tmp_path: Path) -> None:
    always = {**NIGHT, "schedule": "* * * * *", "duration": "2h"}
    repository = two_units(tmp_path, syncWindows=[always])

    ran = synced(repository)
    rest = synced(repository, "--skip-broken", "-o", "json")

    assert ran.returncode == 3
    assert any(
        "error[argo.window]" in line and "`Application/argocd/web`" in line
        for line in ran.stderr.splitlines()
    )
    assert "free" in written(rest)
    assert not written(rest) & {"web", "web-late"}


def test_a_window_of_other_units_blocks_nothing(tmp_path: Path) -> None:
    repository = two_units(tmp_path, syncWindows=[{**NIGHT, "applications": ["other"]}])

    ran = synced(repository, "--start", "2026-11-17T23:30:00Z")

    assert "argo.window]" not in ran.stderr, "no window is for it"


def test_syncs_use_the_account_of_their_destination_where_argo_cd_impersonates(
    tmp_path: Path,
) -> None:
    account: Json = {"server": "*", "namespace": "shop", "defaultServiceAccount": "deployer"}
    repository = two_units(tmp_path, destinationServiceAccounts=[account])
    data: Json = {"application.sync.impersonation.enabled": "true"}
    repository.put("argocd/cm.yaml", {**setting("argocd-cm", "argocd"), "data": data})

    plan = synced(repository, "--dry-run", "-o", "json")
    repository.put("projects/team.yaml", project())
    refused = synced(repository)

    units = json.loads(plan.stdout)["units"]
    users = {unit["unit"].rpartition("/")[2]: unit["user"] for unit in units}
    assert users["web"] == "system:serviceaccount:shop:deployer"
    assert users["free"] == ""
    assert any(
        "`destinationServiceAccounts`" in line and "projects/team.yaml:1" in line
        for line in refused.stderr.splitlines()
    )
    assert refused.returncode == 3


def test_orphaned_objects_are_reported_if_the_project_enables_it(
    wording: RecordedWording, tmp_path: Path
) -> None:
    ignored: Json = [{"group": "", "kind": "Secret", "name": "known-*"}]
    asks: Json = {"warn": True, "ignore": ignored}
    repository = two_units(tmp_path / "repo", orphanedResources=asks)
    scenario = tmp_path / "given.yaml"
    objects = [
        namespace("shop"),
        setting("stray", "shop"),
        setting("web", "shop"),
        {"apiVersion": "v1", "kind": "Secret", "metadata": named("known-one", "shop")},
    ]
    scenario.write_text(json.dumps({"given": {"objects": objects}}))

    ran = tidegate("sync", repository.root, "--sandbox", "--scenario", scenario)
    repository.put("projects/team.yaml", project(orphanedResources={}))
    quiet = tidegate("sync", repository.root, "--sandbox", "--scenario", scenario)

    assert ran.returncode == 0, ran.stderr
    wording(line for line in ran.stderr.splitlines() if "[argo.orphaned]" in line)
    assert line_of(repository, "orphanedResources") not in quiet.stderr
    assert "argo.orphaned" not in quiet.stderr


def test_a_global_project_adds_its_rules_to_projects_with_its_labels(tmp_path: Path) -> None:
    repository = two_units(tmp_path)
    labelled = project()
    labelled["metadata"] = {**named("team", "argocd"), "labels": {"tier": "low"}}
    denies: list[Json] = [{"group": "", "kind": "ConfigMap"}]
    base = project("base", namespaceResourceBlacklist=denies)
    repository.put("projects/all.yaml", labelled, base)
    repository.drop("projects/team.yaml")
    entries = "- projectName: base\n  labelSelector: {matchLabels: {tier: low}}\n"
    data: Json = {"globalProjects": entries}
    repository.put("argocd/cm.yaml", {**setting("argocd-cm", "argocd"), "data": data})

    ran = synced(repository)

    assert ran.returncode == 3
    assert any(
        "error[argo.project]" in line and "`team`" in line and "ConfigMap `web`" in line
        for line in ran.stderr.splitlines()
    )
    assert line_of(repository, '- group: ""', "projects/all.yaml") in ran.stderr
