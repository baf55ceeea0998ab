"""Mistakes in a repository of Flux: each is reported with its location and a fix."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.in_process_lint import lint_at
from tests.support.recorded_wording import RecordedWording
from tests.support.repositories import (
    Repository,
    deployment,
    git_repository,
    kustomization,
    namespace,
    setting,
)
from tests.support.tidegate_runs import tidegate
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.objects import Json, JsonObject

OPERATOR_SOURCE: Json = {"kind": "GitRepository", "name": "flux-system"}


@pytest.fixture
def shop(tmp_path: Path) -> Repository:
    """A database, and a shop that waits for it."""
    made = Repository(tmp_path / "shop")
    put_units(made, kustomization("db", "./db"), kustomization("web", "./web", after=("db",)))
    made.put("db/all.yaml", namespace("shop"), deployment("database"))
    made.put("web/all.yaml", deployment("web"))
    return made


def put_units(repository: Repository, *units: JsonObject) -> None:
    repository.put("clusters/one/units.yaml", git_repository(), *units)


async def findings_by_code(repository: Repository) -> dict[str, Finding]:
    return {finding.code: finding for finding in (await lint_at(repository.root)).findings}


def test_a_correct_repository_has_no_findings(shop: Repository) -> None:
    linted = tidegate("lint", shop.root, "--offline", "--severity", "warning", "-o", "json")

    assert linted.returncode == 0
    assert json.loads(linted.stdout)["findings"] == []


async def test_a_missing_path_is_an_error(shop: Repository) -> None:
    put_units(shop, kustomization("db", "./db"), kustomization("web", "./wed"))

    result = (await findings_by_code(shop))["source.path"]

    assert result.severity is Severity.ERROR
    assert result.location is not None
    assert result.location.field == "spec.path"


async def test_a_missing_path_in_the_source_of_the_flux_operator_is_an_error(
    shop: Repository,
) -> None:
    shop.put(
        "clusters/one/units.yaml",
        kustomization("db", "./db", sourceRef=OPERATOR_SOURCE),
        kustomization("web", "./wed", sourceRef=OPERATOR_SOURCE),
    )

    result = (await findings_by_code(shop))["source.path"]

    assert result.severity is Severity.ERROR
    assert "`wed`" in result.message


async def test_a_misspelt_source_is_reported_with_the_closest_one(shop: Repository) -> None:
    put_units(shop, kustomization("db", "./db", sourceRef={**OPERATOR_SOURCE, "name": "platforms"}))  # type: ignore[dict-item]

    result = (await findings_by_code(shop))["source.undeclared"]

    assert result.severity is Severity.ERROR
    assert "`platform`" in result.fix
    assert result.location is not None
    assert result.location.field == "spec.sourceRef"


async def test_an_undeclared_source_is_a_warning(
    wording: RecordedWording, shop: Repository
) -> None:
    put_units(shop, kustomization("db", "./db", sourceRef={**OPERATOR_SOURCE, "name": "elsewhere"}))  # type: ignore[dict-item]

    result = (await findings_by_code(shop))["source.object"]

    assert result.severity is Severity.WARNING
    wording(result.reason)


@pytest.mark.parametrize("place", ["dbs", "db"])
async def test_a_unit_with_a_misspelt_dependency_never_starts(
    wording: RecordedWording, shop: Repository, place: str
) -> None:
    elsewhere: Json = [{"name": place, **({"namespace": "shop"} if place == "db" else {})}]
    mistake = kustomization("web", "./web", dependsOn=elsewhere)
    put_units(shop, kustomization("db", "./db"), mistake)

    result = (await findings_by_code(shop))["ORD001"]
    played = tidegate("simulate", shop.root, "--offline")

    assert "`Kustomization/flux-system/db`" in result.fix
    assert played.returncode == 4
    missing = "Kustomization/shop/db" if place == "db" else "Kustomization/flux-system/dbs"
    lines = [line for line in played.stdout.splitlines() if f"`{missing}`" in line]
    assert len(lines) == 1
    wording(lines)


async def test_a_health_check_of_a_missing_object_is_reported(
    wording: RecordedWording, shop: Repository
) -> None:
    checks: Json = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "databases", "namespace": "shop"},
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "cache", "namespace": "shop"},
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "shop"},
    ]
    mistake = kustomization("web", "./web", wait=False, healthChecks=checks)
    put_units(shop, kustomization("db", "./db"), mistake)

    report = await lint_at(shop.root)

    messages = [finding for finding in report.findings if finding.code == "ORD001"]
    assert [item.severity for item in messages] == [Severity.ERROR, Severity.WARNING]
    wording(item.fix for item in messages)


async def test_a_kind_that_no_server_has_is_refused(shop: Repository) -> None:
    shop.put("web/all.yaml", {**deployment("web"), "apiVersion": "app/v1"})

    result = (await findings_by_code(shop))["preflight.not-served"]

    assert result.severity is Severity.ERROR
    assert result.message.endswith("`apps/v1 Deployment`")


async def test_invalid_yaml_is_reported_with_its_line(shop: Repository) -> None:
    (shop.root / "web" / "all.yaml").write_text("---\nkind: ConfigMap\n---\na: 1\nb: {c: d\n")

    result = (await findings_by_code(shop))["render.kustomize.resource"]

    assert result.location is not None
    assert (result.location.name, result.location.line) == ("web/all.yaml", 5)
    assert "line" not in result.message


async def test_a_timeout_below_the_first_probe_is_too_short(
    wording: RecordedWording, shop: Repository
) -> None:
    slow = deployment("web")
    probe: Json = {"tcpSocket": {"port": 80}, "initialDelaySeconds": 90}
    slow["spec"]["template"]["spec"]["containers"][0]["readinessProbe"] = probe  # type: ignore[index,call-overload]
    shop.put("web/all.yaml", slow)
    put_units(shop, kustomization("db", "./db"), kustomization("web", "./web", timeout="10s"))

    result = (await findings_by_code(shop))["ORD018"]

    wording(result.message)


async def test_children_of_an_unrendered_unit_have_no_findings(shop: Repository) -> None:
    patch: Json = {"substituteFrom": [{"kind": "ConfigMap", "name": "variables"}]}
    child = kustomization("web", "./platform/web", postBuild=patch)
    release: JsonObject = {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": "web"},
        "spec": {
            "interval": "10m",
            "chart": {"spec": {"chart": "./chart", "sourceRef": OPERATOR_SOURCE}},
        },
    }
    put_units(shop, kustomization("platform", "./platform"))
    shop.put("platform/kustomization.yaml", {"resources": ["units.yaml", "units.yaml", "none"]})
    shop.put("platform/units.yaml", child)
    shop.put("platform/web/all.yaml", setting("web"), release)

    result = await findings_by_code(shop)

    assert "ORD049" in result
    assert {"render.data", "ORD014"} & result.keys() == set()


async def test_a_unit_with_an_unknown_kind_of_source_is_reported_once(shop: Repository) -> None:
    put_units(shop, kustomization("db", "./db", sourceRef={"kind": "GitRepo", "name": "platform"}))

    result = await findings_by_code(shop)

    assert "flux.choice" in result
    assert "plan.empty" not in result


def release(name: str, chart: str, repository: str) -> tuple[JsonObject, JsonObject]:
    """A release from a server that does not exist, and that server."""
    source: Json = {"kind": "HelmRepository", "name": name}
    spec: Json = {
        "interval": "10m",
        "chart": {"spec": {"chart": chart, "version": "1.x", "sourceRef": source}},
    }
    metadata: Json = {"name": name, "namespace": "shop"}
    server: Json = {"interval": "1h", "url": repository}
    return (
        {
            "apiVersion": "source.toolkit.fluxcd.io/v1",
            "kind": "HelmRepository",
            "metadata": metadata,
            "spec": server,
        },
        {
            "apiVersion": "helm.toolkit.fluxcd.io/v2",
            "kind": "HelmRelease",
            "metadata": metadata,
            "spec": spec,
        },
    )


def issuer() -> JsonObject:
    kind: JsonObject = {"apiVersion": "cert-manager.io/v1", "kind": "ClusterIssuer"}
    return {**kind, "metadata": {"name": "own"}, "spec": {"selfSigned": {}}}


@pytest.mark.parametrize(
    ("after", "waits", "count"), [(("db",), True, 0), ((), True, 1), (("db",), False, 0)]
)
async def test_a_custom_resource_of_an_unavailable_chart_must_wait_for_it(
    shop: Repository, after: tuple[str, ...], count: int, *, waits: bool
) -> None:
    put_units(
        shop,
        kustomization("db", "./db", wait=waits),
        kustomization("web", "./web", after=after, into=""),
    )
    shop.put("db/all.yaml", namespace("shop"), *release("certs", "cert-manager", "https://a.test"))
    shop.put("web/all.yaml", issuer())

    report = await lint_at(shop.root)

    findings = [finding for finding in report.findings if finding.code == "ORD063"]
    assert len(findings) == count
    assert all("CRD of ClusterIssuer" in finding.message for finding in findings)
    assert all(finding.snippet.endswith("- name: db") for finding in findings)


async def test_an_unknown_api_version_of_flux_is_refused(shop: Repository) -> None:
    server, made = release("certs", "cert-manager", "https://a.test")
    shop.put(
        "db/all.yaml",
        namespace("shop"),
        server,
        {**made, "apiVersion": "helm.toolkit.fluxcd.io/v3"},
    )

    result = await findings_by_code(shop)

    assert result["schema.refused"].severity is Severity.ERROR
    assert "flux.version" not in result


async def test_the_objects_of_a_unit_that_never_starts_have_no_findings(shop: Repository) -> None:
    put_units(
        shop,
        kustomization("db", "./db", suspend=True),
        kustomization("web", "./web", after=("db",)),
    )
    shop.put("web/all.yaml", *release("certs", "cert-manager", "https://a.test"))

    report = await lint_at(shop.root)

    (message,) = [item.message for item in report.findings if item.code == "units.blocked"]
    assert message.startswith("`Kustomization/flux-system/web` ")
    assert message.endswith(" `Kustomization/flux-system/db`")


async def test_outside_of_git_a_cluster_reaches_as_far_as_the_paths_of_its_units(
    shop: Repository,
) -> None:
    shop.put(
        "clusters/one/units.yaml",
        kustomization("db", "./db", sourceRef=OPERATOR_SOURCE),
        kustomization("web", "./web", after=("db",), sourceRef=OPERATOR_SOURCE),
    )

    report = await lint_at(shop.root / "clusters" / "one")

    assert report.object_count == 5
    assert {finding.code for finding in report.findings} == {"units.checkout"}


@pytest.mark.parametrize("place", ["db", "web"])
async def test_variables_deployed_after_their_reader_are_a_deadlock(
    wording: RecordedWording, shop: Repository, place: str
) -> None:
    variables: JsonObject = {"substituteFrom": [{"kind": "ConfigMap", "name": "variables"}]}
    put_units(
        shop,
        kustomization("db", "./db", postBuild=variables, into=""),
        kustomization("web", "./web", after=("db",), into=""),
    )
    shop.put("db/all.yaml", namespace("shop"))
    shop.put("web/all.yaml", setting("late", "shop"))
    shop.put(f"{place}/variables.yaml", setting("variables", "flux-system"))

    report = await lint_at(shop.root)

    (finding,) = [item for item in report.findings if item.code in {"ORD003", "ORD006"}]
    assert finding.severity is Severity.ERROR
    wording(finding.message)
    assert finding.location is not None
    assert finding.location.field == "spec.postBuild.substituteFrom[0]"


async def test_variables_deployed_before_their_reader_are_no_deadlock(shop: Repository) -> None:
    variables: JsonObject = {"substituteFrom": [{"kind": "ConfigMap", "name": "variables"}]}
    web = kustomization("web", "./web", after=("db",), postBuild=variables, into="")
    put_units(shop, kustomization("db", "./db", into=""), web)
    shop.put("db/all.yaml", namespace("shop"), setting("variables", "flux-system"))
    shop.put("web/all.yaml", setting("late", "shop"))

    result = await findings_by_code(shop)

    assert {"ORD003", "ORD006"} & result.keys() == set()


async def test_a_cycle_through_a_parent_has_a_location(shop: Repository) -> None:
    put_units(shop, kustomization("platform", "./platform", after=("db",), into=""))
    shop.put("platform/units.yaml", kustomization("db", "./db"))

    result = (await findings_by_code(shop))["ORD002"]

    assert result.location is not None
    assert result.location.name == "clusters/one/units.yaml"


async def test_an_autoscaler_of_a_missing_deployment_can_be_simulated(shop: Repository) -> None:
    target: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "wbe"}
    scaler: JsonObject = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 2},
    }
    shop.put("web/all.yaml", deployment("web"), scaler)

    played = tidegate("simulate", shop.root, "--offline")

    assert "scenario.given" not in played.stderr
    assert played.returncode == 0


async def test_a_misspelt_service_account_is_reported_with_the_closest_one(
    shop: Repository,
) -> None:
    account: JsonObject = {"apiVersion": "v1", "kind": "ServiceAccount"}
    metadata: Json = {"name": "builder", "namespace": "flux-system"}
    shop.put("db/all.yaml", namespace("shop"), {**account, "metadata": metadata})
    put_units(shop, kustomization("db", "./db", serviceAccountName="builders", into=""))

    result = (await findings_by_code(shop))["ORD001"]

    assert result.severity is Severity.ERROR
    assert "`builder`" in result.fix


def test_files_of_an_overlay_with_an_unavailable_base_are_checked(shop: Repository) -> None:
    remote = "https://127.0.0.1:1/none/base.git?ref=v1"
    shop.put("web/kustomization.yaml", {"resources": ["all.yaml", remote]})
    shop.put("web/all.yaml", {**deployment("web"), "apiVersion": "app/v1"})

    linted = json.loads(tidegate("lint", shop.root, "-o", "json").stdout)

    (error,) = [item for item in linted["findings"] if item["code"] == "preflight.not-served"]
    assert error["message"].startswith("Deployment shop/web: ")
    assert linted["unknown"]
