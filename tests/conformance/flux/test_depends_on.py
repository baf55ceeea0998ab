"""Dependencies: who waits for whom, what counts as ready, and what never is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conformance.flux.stage import case, lines_with
from tests.conformance.flux.test_sources import controller
from tests.support.flux_repository import UNIT, Layers, begins, events
from tests.support.recorded_wording import RecordedWording
from tests.support.repositories import deployment, namespace, setting
from tidegate.model.k8s.objects import Json

READY = "dep.status.conditions.filter(e, e.type == 'Ready').exists(e, e.status == 'True')"
SAME = "dep.metadata.name == 'a' && self.metadata.namespace == dep.metadata.namespace"
FAILING = "behaviours:\n- {effect: never-ready, when: {name: a}}\n"


@pytest.fixture
def layers(tmp_path: Path) -> Layers:
    """Three layers of one source; each takes a few seconds."""
    made = Layers(tmp_path / "platform")
    for name in "abc":
        made.put(f"{name}/all.yaml", deployment(name))
    made.unit("a")
    made.unit("b", after=["a"])
    made.unit("c", after=["b"])
    return made


def simulated(layers: Layers, *args: str) -> dict[str, float]:
    return begins(layers.run("simulate", "--engine", "flux", "-o", "json", *args))


@case(12)
def test_dependencies_are_checked_every_thirty_seconds(
    layers: Layers, wording: RecordedWording
) -> None:
    """The worked timeline of Flux's documents: 5 seconds for each, and a look every 30."""
    ran = layers.run("simulate", "--engine", "flux")

    assert ran.returncode == 0, ran.stderr
    table, _, summary = ran.stdout.partition("\n\n")
    _, *rows = table.splitlines()
    assert [line.split()[-2:] for line in rows] == [
        ["0.0s", "0.0s"],
        ["0.0s", "5.0s"],
        ["30.0s", "35.0s"],
        ["60.0s", "65.0s"],
    ]
    assert "65.0s" in summary
    wording(ran.stdout)


@case(13)
def test_a_dependency_with_another_source_is_awaited(layers: Layers) -> None:
    other = {**layers.units["a"]}
    layers.more = [
        {
            "apiVersion": "source.toolkit.fluxcd.io/v1",
            "kind": "GitRepository",
            "metadata": {"name": "second", "namespace": "flux-system"},
            "spec": {"interval": "1m", "url": "https://git.example.com/shop/platform.git"},
        }
    ]
    layers.unit("b", after=["a"], sourceRef={"kind": "GitRepository", "name": "second"})
    layers.units["a"] = other

    assert simulated(layers)["b/rest"] == 30.0


@case(14)
def test_nothing_is_applied_after_an_unhealthy_dependency(
    layers: Layers, tmp_path: Path, wording: RecordedWording
) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(FAILING)
    layers.unit("a", timeout="3m")

    ran = layers.run(
        *("simulate", "--engine", "flux", "-o", "json", "--until", "15m"),
        *("--scenario", str(scenario)),
    )

    result = events(ran)
    again = [item for item in result if item["event"] == "retry.scheduled"]
    start = int(str(result[0]["at"]))
    waited = [round((int(str(item["at"])) - start) / 1000) for item in again]
    assert waited[:2] == [180, 420], "three minutes each, and one before the next try"
    assert waited[2:4] == [605, 665], "after ten the Deployment gives up, which ends a wait early"
    assert {step_start.partition("/")[0] for step_start in begins(ran)} == {"clusters-main", "a"}
    assert "Deployment shop/a" in str(result[-1]["message"])
    wording(str(result[-1]["message"]))


@case(10)
def test_a_missing_dependency_is_reported_with_its_location(layers: Layers) -> None:
    layers.unit("b", after=["nobody"])

    refused = layers.run("sync", "--sandbox", "--empty-cluster")
    rest = layers.run("sync", "--sandbox", "--empty-cluster", "--skip-broken", "-o", "json")

    assert refused.returncode == 3
    assert lines_with(refused.stderr, "error[units.unknown]", f"`{UNIT}b`", f"`{UNIT}nobody`")
    assert "at clusters/main/all.yaml:" in refused.stderr
    assert "(spec.dependsOn[0])" in refused.stderr
    assert {step_start.partition("/")[0] for step_start in begins(rest)} == {"clusters-main", "a"}


@case(15)
def test_a_true_ready_expr_starts_a_unit_unless_additive_cel_is_enabled(
    layers: Layers,
) -> None:
    layers.unit("b", dependsOn=[{"name": "a", "readyExpr": SAME}])
    by_flux = layers.run("simulate", "--engine", "flux", "-o", "json")
    by_us = begins(layers.run("simulate", "--engine", "tidegate", "-o", "json"))
    gate = "--feature-gates=AdditiveCELDependencyCheck=true"
    layers.more = [namespace("flux-system"), controller(gate)]

    asking = simulated(layers)

    findings = [json.loads(line) for line in by_flux.stderr.splitlines()]
    assert ("flux.not-awaited", "warning") in {
        (finding["code"], finding["severity"]) for finding in findings
    }
    assert begins(by_flux)["b/rest"] == 0.0
    assert by_us["b/rest"] > 0.0, "by our rules a dependency is ready, whatever else is asked"
    assert asking["b/rest"] == 30.0


@case(15)
def test_a_ready_expr_starts_a_unit_after_a_suspended_dependency(layers: Layers) -> None:
    layers.unit("a", suspend=True)
    layers.unit("b", dependsOn=[{"name": "a", "readyExpr": SAME}])

    assert "b/rest" in simulated(layers)


@case(16)
def test_a_ready_expr_that_reads_the_ready_condition_waits_for_it(layers: Layers) -> None:
    layers.unit("b", dependsOn=[{"name": "a", "readyExpr": READY}])

    assert simulated(layers)["b/rest"] == 30.0


@case(16)
def test_a_ready_expr_that_is_false_for_a_ready_dependency_is_reported(layers: Layers) -> None:
    never = "dep.metadata.name == 'somebody else'"
    layers.unit("b", dependsOn=[{"name": "a", "readyExpr": never}])

    ran = layers.run("sync", "--sandbox")

    assert ran.returncode == 3
    assert lines_with(ran.stderr, "error[flux.never]", "`spec.dependsOn[0].readyExpr`")
    assert "at clusters/main/all.yaml:" in ran.stderr


@case(17)
@pytest.mark.parametrize("expression", ["deps.x == 1", "dep.status.flag", "dep.metadata.name =="])
def test_an_invalid_ready_expr_prevents_the_unit(layers: Layers, expression: str) -> None:
    layers.unit("b", dependsOn=[{"name": "a", "readyExpr": expression}])

    refused = layers.run("sync", "--sandbox")
    played = layers.run("simulate", "--engine", "flux", "-o", "json")

    assert refused.returncode == 3
    assert lines_with(refused.stderr, "error[flux.expression]", "`spec.dependsOn[0].readyExpr`")
    assert set(begins(played)) == {"clusters-main/definitions", "a/rest"}


@case(20)
def test_a_dependency_cycle_is_reported_with_its_members(layers: Layers) -> None:
    layers.unit("a", after=["c"])

    ran = layers.run("sync", "--sandbox")

    assert ran.returncode == 3
    assert all(f"{UNIT}{name}" in ran.stderr for name in "abc")
    assert "at clusters/main/all.yaml:" in ran.stderr
    assert "(spec.dependsOn[0])" in ran.stderr


def test_a_unit_that_depends_on_itself_is_reported(layers: Layers) -> None:
    layers.unit("b", after=["b"])

    ran = layers.run("sync", "--sandbox")

    assert ran.returncode == 3
    assert "error[flux.itself]" in ran.stderr


def test_a_dependent_of_a_suspended_unit_never_starts_and_is_reported(
    layers: Layers,
) -> None:
    layers.unit("a", suspend=True)

    by_flux = layers.run("simulate", "--engine", "flux", "-o", "json")

    assert set(begins(by_flux)) == {"clusters-main/definitions"}
    blocked = lines_with(by_flux.stderr, '"units.blocked"')
    assert len(blocked) == 2
    for unit, awaited in (("b", "a"), ("c", "b")):
        assert lines_with("\n".join(blocked), f"`{UNIT}{unit}`", f"`{UNIT}{awaited}`")


@case(49)
def test_a_ready_expr_that_fails_blocks_the_unit_until_the_timeout(
    tmp_path: Path,
) -> None:
    layers = Layers(tmp_path / "platform")
    layers.put("a/all.yaml", setting("one"))
    layers.put("b/all.yaml", setting("two"))
    rule: Json = {"apiVersion": "v1", "kind": "ConfigMap", "current": "has(data.foo.bar)"}
    layers.unit("a", timeout="1s", healthCheckExprs=[rule])
    layers.unit("b", after=["a"])

    ran = layers.run("simulate", "--engine", "flux", "-o", "json", "--until", "2m")

    result = events(ran)
    (again,) = [item for item in result if item["event"] == "retry.scheduled"]
    assert (int(str(again["at"])) - int(str(result[0]["at"]))) // 1000 == 30, "no less than that"
    assert again["reason"] == "Deadline"
    assert "ConfigMap shop/one" in str(again["message"])
    assert "b/rest" not in begins(ran)


def test_health_check_expressions_evaluate_kinds_without_a_status(layers: Layers) -> None:
    """A ConfigMap is ready at once for Flux, unless an expression says otherwise."""
    layers.put("a/more.yaml", {**setting("flag"), "data": {"ready": "yes"}})
    rule: dict[str, Json] = {"apiVersion": "v1", "kind": "ConfigMap"}
    layers.unit("a", healthCheckExprs=[{**rule, "current": "data.ready == 'yes'"}])
    good = simulated(layers)
    layers.unit("a", healthCheckExprs=[{**rule, "current": "data.ready == 'no'"}])

    bad = simulated(layers, "--until", "5m")

    assert "b/rest" in good
    assert "b/rest" not in bad
