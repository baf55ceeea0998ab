"""Units of Flux: their findings, and the additions of `tidegate.yaml`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.flux_repository import UNIT, Layers, Ran, begins
from tests.support.recorded_wording import RecordedWording
from tests.support.repositories import Repository, application, deployment, kustomization, setting
from tests.support.tidegate_runs import tidegate
from tidegate.model.k8s.objects import Json, JsonObject

CHARTS: JsonObject = {
    "apiVersion": "source.toolkit.fluxcd.io/v1",
    "kind": "HelmRepository",
    "metadata": {"name": "charts", "namespace": "flux-system"},
    "spec": {"interval": "1h", "url": "https://charts.example.com"},
}
HEALTH = """\
health:
- apiVersion: v1
  kind: ConfigMap
  current: data.to == '{value}'
"""


def messages(ran: Ran, severity: str, code: str) -> list[str]:
    """The messages of the findings with this severity and code."""
    findings = [json.loads(line) for line in ran.stderr.splitlines()]
    return [
        finding["message"]
        for finding in findings
        if (finding["severity"], finding["code"]) == (severity, code)
    ]


def two_layers(root: Path, **spec: Json) -> Layers:
    layers = Layers(root)
    layers.put("a/all.yaml", setting("one"))
    layers.put("b/all.yaml", deployment("two"))
    layers.unit("a", **spec)
    layers.unit("b", after=["a"])
    return layers


def test_a_dependency_that_applies_only_sources_needs_no_wait(tmp_path: Path) -> None:
    layers = two_layers(tmp_path, wait=False)
    layers.put("a/all.yaml", CHARTS)
    sources = layers.run("lint", "-o", "json")
    layers.put("a/all.yaml", CHARTS, deployment("one"))
    workload = layers.run("lint", "-o", "json")

    assert '"ORD016"' not in sources.stdout
    assert '"ORD016"' in workload.stdout


def test_health_expressions_gate_for_tidegate_and_not_for_flux(tmp_path: Path) -> None:
    layers = two_layers(tmp_path, timeout="1m")
    (tmp_path / "tidegate.yaml").write_text(HEALTH.format(value="2"))

    ran = layers.run("simulate", "--engine", "flux,tidegate", "-o", "json", "--until", "5m")
    (tmp_path / "tidegate.yaml").write_text(HEALTH.format(value="1"))
    good = layers.run("sync", "--sandbox")

    assert "b/rest" in begins(ran, "flux")
    assert "b/rest" not in begins(ran, "tidegate")
    assert good.returncode == 0, good.stderr


def test_an_invalid_health_expression_is_reported_with_its_line(
    tmp_path: Path,
) -> None:
    layers = two_layers(tmp_path)
    (tmp_path / "tidegate.yaml").write_text(HEALTH.format(value="1").replace("==", "="))

    ran = layers.run("sync", "--sandbox")

    assert ran.returncode == 3
    assert "error[flux.expression]" in ran.stderr
    assert "tidegate.yaml:2" in ran.stderr


def test_an_object_with_ssa_ignore_is_not_written_and_reported(
    wording: RecordedWording, tmp_path: Path
) -> None:
    layers = two_layers(tmp_path)
    left = setting("left")
    metadata: Json = {"name": "left", "labels": {"kustomize.toolkit.fluxcd.io/ssa": "Ignore"}}
    layers.put("a/left.yaml", {**left, "metadata": metadata})

    ran = layers.run("sync", "--sandbox")

    assert ran.returncode == 0, ran.stderr
    assert "ConfigMap shop/left" in ran.stderr
    wording(line for line in ran.stderr.splitlines() if "ConfigMap shop/left" in line)


def test_a_health_check_with_an_old_version_uses_the_served_one(
    tmp_path: Path,
) -> None:
    check: Json = {
        "apiVersion": "apps/v1beta2",
        "kind": "Deployment",
        "name": "one",
        "namespace": "shop",
    }
    layers = two_layers(tmp_path, wait=False, healthChecks=[check])
    layers.put("a/all.yaml", deployment("one"))

    ran = layers.run("sync", "--sandbox", "-o", "json")

    assert ran.returncode == 0, ran.stderr
    assert begins(ran)["b/rest"] > 0.0, "after the Deployment, and not at once"
    (message,) = messages(ran, "note", "flux.check")
    assert "`apps/v1beta2`" in message
    assert "Deployment" in message


def test_a_child_in_the_health_checks_is_waited_for(tmp_path: Path) -> None:
    check: Json = {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1beta1",
        "kind": "Kustomization",
        "name": "child",
        "namespace": "flux-system",
    }
    layers = two_layers(tmp_path, wait=False, into="", healthChecks=[check])
    layers.put("a/all.yaml", kustomization("child", "./child"))
    layers.put("child/all.yaml", deployment("one"))

    slow, fast = (
        begins(layers.run("simulate", "--engine", engine, "-o", "json"))
        for engine in ("flux", "tidegate")
    )

    assert (slow["child/rest"], slow["b/rest"]) == (0.0, 30.0)
    assert fast["b/rest"] == 3.0


DEPENDS_ON = "tidegate.dev/depends-on"


def mixed(root: Path, names: str, *, application_names: str = "") -> Layers:
    """Two Kustomizations and an Application, of which the second Kustomization waits."""
    layers = two_layers(root)
    layers.put("base/all.yaml", deployment("base"))
    base = application("base", "base")
    layers.unit("b")
    for body, text in ((layers.units["b"], names), (base, application_names)):
        metadata = body["metadata"]
        assert isinstance(metadata, dict)
        if text:
            metadata["annotations"] = {DEPENDS_ON: text}
    layers.more = [base]
    return layers


def test_a_kustomization_can_wait_for_an_application_and_the_reverse(tmp_path: Path) -> None:
    layers = mixed(tmp_path / "one", "Application/argocd/base")
    turned = mixed(tmp_path / "two", "", application_names=f"{UNIT}a, apps/v1/Deployment/shop/two")

    first, second = (
        begins(item.run("sync", "--sandbox", "-o", "json")) for item in (layers, turned)
    )
    native = layers.run("simulate", "-o", "json")

    base = "Application/argocd/base/sync/0"
    assert (first[base], first["b/rest"]) == (0.0, 3.0)
    assert (second["b/rest"], second[base]) == (0.0, 3.0)
    assert begins(native)["b/rest"] == 0.0
    assert messages(native, "note", "units.ignored-annotation")


def test_the_depends_on_annotation_must_name_a_unit_or_an_object(
    wording: RecordedWording, tmp_path: Path
) -> None:
    cases = {
        "Deployment shop/db": "units.depends-on",
        f"{UNIT}b": "units.depends-on",
        "Application/argocd/nobody": "units.unknown",
    }
    for number, (text, code) in enumerate(cases.items()):
        ran = mixed(tmp_path / str(number), text).run("sync", "--sandbox", "--empty-cluster")

        assert ran.returncode == 3
        errors = [line for line in ran.stderr.splitlines() if f"error[{code}]: " in line]
        assert len(errors) == 1, (text, ran.stderr)
        wording(errors)
        assert "clusters/main/all.yaml:" in ran.stderr
        assert DEPENDS_ON in ran.stderr


def test_a_dependency_cycle_across_dialects_is_rejected(tmp_path: Path) -> None:
    layers = mixed(tmp_path, "Application/argocd/base", application_names=f"{UNIT}b")

    ran = layers.run("sync", "--sandbox")

    assert ran.returncode == 3
    assert "Application/argocd/base" in ran.stderr
    assert f"{UNIT}b" in ran.stderr


def test_an_undeclared_source_of_the_operator_is_the_checkout(
    wording: RecordedWording, tmp_path: Path
) -> None:
    root = Repository(tmp_path)
    reference: Json = {"kind": "GitRepository", "name": "flux-system"}
    root.put("clusters/main/a.yaml", kustomization("a", "./a", sourceRef=reference, into="default"))
    root.put("clusters/main/b.yaml", kustomization("b", "./gone", sourceRef=reference))
    root.put("clusters/main/c.yaml", kustomization("c", "./c", sourceRef=reference, into="default"))
    root.put("a/all.yaml", setting("one"))
    root.put("c/all.yaml", setting("two"))

    ran = tidegate("sync", tmp_path, "--sandbox", "--empty-cluster", "--skip-broken", "-o", "json")

    assert "a/rest" in begins(ran)
    (taken,) = messages(ran, "note", "units.checkout")
    wording(taken)
    (refused,) = messages(ran, "error", "source.path")
    wording(refused)


def test_a_dependency_on_a_unit_of_another_kind_is_reported_with_a_hint(tmp_path: Path) -> None:
    layers = two_layers(tmp_path)
    release: dict[str, Json] = {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": "redis", "namespace": "flux-system"},
        "spec": {
            "interval": "10m",
            "chart": {
                "spec": {
                    "chart": "./chart",
                    "sourceRef": {"kind": "GitRepository", "name": "platform"},
                }
            },
        },
    }
    layers.write("chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n")
    layers.more = [release]
    layers.unit("b", after=["redis"])

    ran = layers.run("sync", "--sandbox")

    assert ran.returncode == 3
    (error,) = [line for line in ran.stderr.splitlines() if "error[units.unknown]: " in line]
    assert f"`{UNIT}b` " in error
    assert f"`{UNIT}redis`" in error
    assert "`tidegate.dev/depends-on: HelmRelease/flux-system/redis`" in ran.stderr
