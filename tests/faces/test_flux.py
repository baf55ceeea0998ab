"""Flux's units from outside: what is told of them, and what `tidegate.yaml` adds."""

from __future__ import annotations

from pathlib import Path

from tests.acceptance.flux.repository import UNIT, Layers, begins
from tests.fakes.repositories import deployment, kustomization, setting
from tidegate.model.objects import Json

HEALTH = """\
health:
- apiVersion: v1
  kind: ConfigMap
  current: data.to == '{value}'
"""


def two_layers(root: Path, **spec: Json) -> Layers:
    layers = Layers(root)
    layers.put("a/all.yaml", setting("one"))
    layers.put("b/all.yaml", deployment("two"))
    layers.unit("a", **spec)
    layers.unit("b", after=["a"])
    return layers


def test_expressions_of_the_repository_gate_by_our_rules_and_not_by_fluxs(tmp_path: Path) -> None:
    layers = two_layers(tmp_path, timeout="1m")
    (tmp_path / "tidegate.yaml").write_text(HEALTH.format(value="2"))

    ran = layers.run("simulate", "--engine", "flux,tidegate", "-o", "json", "--until", "5m")
    (tmp_path / "tidegate.yaml").write_text(HEALTH.format(value="1"))
    good = layers.run("sync", "--sandbox")

    assert "b/rest" in begins(ran, "flux")
    assert "b/rest" not in begins(ran, "tidegate")
    assert good.returncode == 0, good.stderr


def test_an_expression_of_the_repository_that_cannot_be_used_is_told_at_its_line(
    tmp_path: Path,
) -> None:
    layers = two_layers(tmp_path)
    (tmp_path / "tidegate.yaml").write_text(HEALTH.format(value="1").replace("==", "="))

    ran = layers.run("sync", "--sandbox")

    assert ran.returncode == 3
    assert "error[flux.expression]" in ran.stderr
    assert "tidegate.yaml:2" in ran.stderr


def test_what_asks_for_being_left_alone_is_named(tmp_path: Path) -> None:
    layers = two_layers(tmp_path)
    left = setting("left")
    metadata: Json = {"name": "left", "labels": {"kustomize.toolkit.fluxcd.io/ssa": "Ignore"}}
    layers.put("a/left.yaml", {**left, "metadata": metadata})

    ran = layers.run("sync", "--sandbox")

    assert ran.returncode == 0, ran.stderr
    assert "note: ConfigMap shop/left asks for being left alone: it is not written" in ran.stderr


def test_a_check_that_names_an_old_version_is_looked_at_in_the_one_that_is_served(
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
    assert begins(ran)["b/rest"] > 0.0, "behind the Deployment, and not at once"
    assert "warning[flux.check]" in ran.stderr
    assert f"{UNIT}a" in ran.stderr


def test_a_child_that_is_listed_is_waited_for_by_its_own_rollout(tmp_path: Path) -> None:
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
