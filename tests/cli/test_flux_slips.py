"""Slips in a repository of Flux: each is named where it stands, with what was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.linting import lint_at
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

OWN_SOURCE: Json = {"kind": "GitRepository", "name": "flux-system"}


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


async def found_in(repository: Repository) -> dict[str, Finding]:
    return {finding.code: finding for finding in (await lint_at(repository.root)).findings}


def test_a_repository_without_slips_has_none(shop: Repository) -> None:
    linted = tidegate("lint", shop.root, "--offline", "--severity", "warning")

    assert linted.returncode == 0
    assert linted.stdout.startswith("0 errors, 0 warnings")


async def test_a_path_that_is_not_there_is_an_error(shop: Repository) -> None:
    put_units(shop, kustomization("db", "./db"), kustomization("web", "./wed"))

    result = (await found_in(shop))["source.path"]

    assert result.severity is Severity.ERROR
    assert result.location is not None
    assert result.location.field == "spec.path"


async def test_so_it_is_where_the_source_is_made_by_fluxs_operator(shop: Repository) -> None:
    shop.put(
        "clusters/one/units.yaml",
        kustomization("db", "./db", sourceRef=OWN_SOURCE),
        kustomization("web", "./wed", sourceRef=OWN_SOURCE),
    )

    result = (await found_in(shop))["source.path"]

    assert result.message.endswith("there is no `wed` here")


async def test_a_source_that_is_nearly_called_so_is_meant(shop: Repository) -> None:
    put_units(shop, kustomization("db", "./db", sourceRef={**OWN_SOURCE, "name": "platforms"}))  # type: ignore[dict-item]

    result = (await found_in(shop))["source.undeclared"]

    assert result.severity is Severity.ERROR
    assert result.fix == "did you mean `platform`?"
    assert result.location is not None
    assert result.location.field == "spec.sourceRef"


async def test_a_source_that_nobody_declares_is_a_warning(shop: Repository) -> None:
    put_units(shop, kustomization("db", "./db", sourceRef={**OWN_SOURCE, "name": "elsewhere"}))  # type: ignore[dict-item]

    result = (await found_in(shop))["source.object"]

    assert result.severity is Severity.WARNING
    assert result.reason == "it may be in the cluster already; else Flux waits for it in vain"


@pytest.mark.parametrize("place", ["dbs", "db"])
async def test_whoever_depends_on_a_slip_never_begins(shop: Repository, place: str) -> None:
    elsewhere: Json = [{"name": place, **({"namespace": "shop"} if place == "db" else {})}]
    slip = kustomization("web", "./web", dependsOn=elsewhere)
    put_units(shop, kustomization("db", "./db"), slip)

    result = (await found_in(shop))["ORD001"]
    played = tidegate("simulate", shop.root, "--offline")

    assert result.fix == "did you mean `Kustomization/flux-system/db`?"
    assert played.returncode == 4
    assert ": failed after" in played.stdout
    assert played.stdout.count("which is not there") == 1


async def test_a_health_check_that_nobody_brings_is_told(shop: Repository) -> None:
    checks: Json = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "databases", "namespace": "shop"},
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "cache", "namespace": "shop"},
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "shop"},
    ]
    slip = kustomization("web", "./web", wait=False, healthChecks=checks)
    put_units(shop, kustomization("db", "./db"), slip)

    report = await lint_at(shop.root)

    messages = [finding for finding in report.findings if finding.code == "ORD001"]
    assert [(item.severity, item.fix) for item in messages] == [
        (Severity.ERROR, "did you mean Deployment `shop/database`?"),
        (Severity.WARNING, "correct the name, or add what is named"),
    ]


async def test_a_kind_that_no_server_has_is_refused(shop: Repository) -> None:
    shop.put("web/all.yaml", {**deployment("web"), "apiVersion": "app/v1"})

    result = (await found_in(shop))["preflight.not-served"]

    assert result.severity is Severity.ERROR
    assert result.message.endswith("it serves `apps/v1 Deployment`")


async def test_text_that_is_no_yaml_is_shown_at_its_line(shop: Repository) -> None:
    (shop.root / "web" / "all.yaml").write_text("---\nkind: ConfigMap\n---\na: 1\nb: {c: d\n")

    result = (await found_in(shop))["render.kustomize.resource"]

    assert result.location is not None
    assert (result.location.name, result.location.line) == ("web/all.yaml", 5)
    assert "line" not in result.message


async def test_a_timeout_below_the_first_probe_is_too_short(shop: Repository) -> None:
    slow = deployment("web")
    probe: Json = {"tcpSocket": {"port": 80}, "initialDelaySeconds": 90}
    slow["spec"]["template"]["spec"]["containers"][0]["readinessProbe"] = probe  # type: ignore[index,call-overload]
    shop.put("web/all.yaml", slow)
    put_units(shop, kustomization("db", "./db"), kustomization("web", "./web", timeout="10s"))

    result = (await found_in(shop))["ORD018"]

    assert result.message == (
        "`Kustomization/flux-system/web` waits 30s, and a container of Deployment `shop/web` may"
        " take 1m30s to get ready"
    )


async def test_what_cannot_be_known_of_children_is_not_told_of_them(shop: Repository) -> None:
    patch: Json = {"substituteFrom": [{"kind": "ConfigMap", "name": "words"}]}
    child = kustomization("web", "./platform/web", postBuild=patch)
    release: JsonObject = {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": "web"},
        "spec": {
            "interval": "10m",
            "chart": {"spec": {"chart": "./chart", "sourceRef": OWN_SOURCE}},
        },
    }
    put_units(shop, kustomization("platform", "./platform"))
    shop.put("platform/kustomization.yaml", {"resources": ["units.yaml", "units.yaml", "none"]})
    shop.put("platform/units.yaml", child)
    shop.put("platform/web/all.yaml", setting("web"), release)

    result = await found_in(shop)

    assert "ORD049" in result
    assert {"render.data", "ORD014"} & result.keys() == set()


async def test_a_unit_whose_source_is_of_no_kind_is_told_once(shop: Repository) -> None:
    put_units(shop, kustomization("db", "./db", sourceRef={"kind": "GitRepo", "name": "platform"}))

    result = await found_in(shop)

    assert "flux.choice" in result
    assert "plan.empty" not in result


def release(name: str, chart: str, repository: str) -> tuple[JsonObject, JsonObject]:
    """A release from a server that nobody can ask, and that server."""
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
    ("after", "waits", "told"), [(("db",), True, 0), ((), True, 1), (("db",), False, 0)]
)
async def test_what_leans_on_a_chart_that_cannot_be_had_must_wait_for_it(
    shop: Repository, after: tuple[str, ...], told: int, *, waits: bool
) -> None:
    put_units(
        shop,
        kustomization("db", "./db", wait=waits),
        kustomization("web", "./web", after=after, into=""),
    )
    shop.put("db/all.yaml", namespace("shop"), *release("certs", "cert-manager", "https://a.test"))
    shop.put("web/all.yaml", issuer())

    report = await lint_at(shop.root)

    matches = [finding.message for finding in report.findings if finding.code == "ORD008"]
    assert matches == told * [
        (
            "the definition of ClusterIssuer `own` comes with `HelmRelease/shop/certs`, by its"
            " name, and nothing waits for that"
        )
    ]


async def test_a_version_that_flux_has_never_had_is_refused(shop: Repository) -> None:
    server, made = release("certs", "cert-manager", "https://a.test")
    shop.put(
        "db/all.yaml",
        namespace("shop"),
        server,
        {**made, "apiVersion": "helm.toolkit.fluxcd.io/v3"},
    )

    result = await found_in(shop)

    assert result["schema.refused"].severity is Severity.ERROR
    assert "flux.version" not in result


async def test_what_is_brought_by_a_unit_that_never_begins_is_not_told(shop: Repository) -> None:
    put_units(
        shop,
        kustomization("db", "./db", suspend=True),
        kustomization("web", "./web", after=("db",)),
    )
    shop.put("web/all.yaml", *release("certs", "cert-manager", "https://a.test"))

    report = await lint_at(shop.root)

    messages = [finding.message for finding in report.findings if finding.code == "units.blocked"]
    assert messages == [
        "`Kustomization/flux-system/web` never begins: it waits for `Kustomization/flux-system/db`"
    ]


async def test_outside_of_git_a_cluster_reaches_as_far_as_the_paths_of_its_units(
    shop: Repository,
) -> None:
    shop.put(
        "clusters/one/units.yaml",
        kustomization("db", "./db", sourceRef=OWN_SOURCE),
        kustomization("web", "./web", after=("db",), sourceRef=OWN_SOURCE),
    )

    report = await lint_at(shop.root / "clusters" / "one")

    assert report.object_count == 5
    assert {finding.code for finding in report.findings} == {"units.checkout"}


@pytest.mark.parametrize("place", ["db", "web"])
async def test_variables_that_come_behind_who_is_built_with_them_are_a_deadlock(
    shop: Repository, place: str
) -> None:
    words: JsonObject = {"substituteFrom": [{"kind": "ConfigMap", "name": "words"}]}
    put_units(
        shop,
        kustomization("db", "./db", postBuild=words, into=""),
        kustomization("web", "./web", after=("db",), into=""),
    )
    shop.put("db/all.yaml", namespace("shop"))
    shop.put("web/all.yaml", setting("late", "shop"))
    shop.put(f"{place}/words.yaml", setting("words", "flux-system"))

    report = await lint_at(shop.root)

    comes = "brings itself" if place == "db" else "comes with `Kustomization/flux-system/web`"
    messages = [finding for finding in report.findings if finding.code in {"ORD003", "ORD006"}]
    assert [item.severity for item in messages] == [Severity.ERROR]
    assert comes in messages[0].message
    assert messages[0].location is not None
    assert messages[0].location.field == "spec.postBuild.substituteFrom[0]"


async def test_variables_that_come_first_are_no_matter(shop: Repository) -> None:
    words: JsonObject = {"substituteFrom": [{"kind": "ConfigMap", "name": "words"}]}
    web = kustomization("web", "./web", after=("db",), postBuild=words, into="")
    put_units(shop, kustomization("db", "./db", into=""), web)
    shop.put("db/all.yaml", namespace("shop"), setting("words", "flux-system"))
    shop.put("web/all.yaml", setting("late", "shop"))

    result = await found_in(shop)

    assert {"ORD003", "ORD006"} & result.keys() == set()


async def test_a_circle_through_who_brings_a_unit_has_a_place(shop: Repository) -> None:
    put_units(shop, kustomization("platform", "./platform", after=("db",), into=""))
    shop.put("platform/units.yaml", kustomization("db", "./db"))

    result = (await found_in(shop))["ORD002"]

    assert result.location is not None
    assert result.location.name == "clusters/one/units.yaml"


async def test_whoever_scales_what_nobody_brings_can_be_simulated(shop: Repository) -> None:
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


async def test_an_account_that_is_nearly_called_so_is_meant(shop: Repository) -> None:
    account: JsonObject = {"apiVersion": "v1", "kind": "ServiceAccount"}
    unit_resource: Json = {"name": "builder", "namespace": "flux-system"}
    shop.put("db/all.yaml", namespace("shop"), {**account, "metadata": unit_resource})
    put_units(shop, kustomization("db", "./db", serviceAccountName="builders", into=""))

    result = (await found_in(shop))["ORD001"]

    assert result.severity is Severity.ERROR
    assert result.fix == "did you mean `builder`?"


def test_what_stands_beside_a_base_that_cannot_be_had_is_looked_at(shop: Repository) -> None:
    remote = "https://127.0.0.1:1/none/base.git?ref=v1"
    shop.put("web/kustomization.yaml", {"resources": ["all.yaml", remote]})
    shop.put("web/all.yaml", {**deployment("web"), "apiVersion": "app/v1"})

    linted = tidegate("lint", shop.root)

    assert "error[preflight.not-served]: Deployment shop/web" in linted.stdout
    assert "not known: " in linted.stdout
