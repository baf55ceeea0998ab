"""What cannot work is reported with its location before any write, and is a clear state then."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conformance.flux.stage import case
from tests.support.flux_repository import UNIT, Layers, Ran, begins, events
from tests.support.persistent_sandbox import KUSTOMIZATION, PersistentSandbox
from tests.support.recorded_wording import RecordedWording
from tests.support.repositories import setting
from tests.support.sops_program import AgeKey, encrypt
from tests.support.unit_conditions import condition, list_results
from tidegate.model.k8s.json_fields import get_mapping
from tidegate.model.k8s.objects import Json, JsonObject

SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\n"
EMPTY = "status.conditions.filter(e, e.type == 'Ready').{}(e, e.status == 'True')"
BUCKET: JsonObject = {
    "apiVersion": "source.toolkit.fluxcd.io/v1",
    "kind": "Bucket",
    "metadata": {"name": "s3", "namespace": "flux-system"},
    "spec": {"interval": "10m", "bucketName": "x", "endpoint": "s3.example.com"},
}
RELEASE: JsonObject = {
    "apiVersion": "helm.toolkit.fluxcd.io/v2",
    "kind": "HelmRelease",
    "metadata": {"name": "redis", "namespace": "flux-system"},
    "spec": {
        "interval": "10m",
        "suspend": True,
        "chart": {
            "spec": {"chart": "./x", "sourceRef": {"kind": "GitRepository", "name": "platform"}}
        },
    },
}


def _not_found(name: str) -> str:
    api = "kustomizations.kustomize.toolkit.fluxcd.io"
    return f"dependency 'flux-system/{name}' not found: {api} \"{name}\" not found"


BAD: dict[str, tuple[dict[str, Json], str, str]] = {
    "nothing": ({"dependsOn": [{"name": "gone"}]}, "units.unknown", f"`{UNIT}gone`"),
    "kind": ({"dependsOn": [{"name": "redis"}]}, "units.unknown", f"`{UNIT}redis`"),
    "itself": ({"dependsOn": [{"name": "itself"}]}, "flux.itself", "`spec.dependsOn[0]`"),
    "variables": (
        {"postBuild": {"substituteFrom": [{"kind": "Secret", "name": "vars"}]}},
        "render.secret",
        "Secret `vars`",
    ),
    "waits": (
        {"dependsOn": [{"name": "asleep"}]},
        "units.dependency-suspended",
        f"`{UNIT}asleep`",
    ),
    "bucket": ({"sourceRef": {"kind": "Bucket", "name": "s3"}}, "source.offline", ""),
    "far": (
        {"sourceRef": {"kind": "GitRepository", "name": "nowhere"}},
        "source.object",
        "`GitRepository/flux-system/nowhere`",
    ),
    "path": ({"path": "./nowhere"}, "source.path", "`nowhere`"),
    "unready": (
        {"dependsOn": [{"name": "good", "readyExpr": "dep.status.observedGeneration == 7"}]},
        "flux.never",
        "`spec.dependsOn[0].readyExpr`",
    ),
    "compile": (
        {"healthCheckExprs": [{"apiVersion": "v1", "kind": "ConfigMap", "current": "data.to = 1"}]},
        "flux.expression",
        "`spec.healthCheckExprs[0].current`",
    ),
    "vacuous": (
        {"healthCheckExprs": [{"apiVersion": "a/v1", "current": EMPTY.format("all")}]},
        "flux.always-true",
        "`spec.healthCheckExprs[0].current`",
    ),
    "never": (
        {"healthCheckExprs": [{"apiVersion": "a/v1", "current": "[].exists(e, e == 'True')"}]},
        "flux.never",
        "`spec.healthCheckExprs[0].current`",
    ),
    "ready": (
        {"dependsOn": [{"name": "good", "readyExpr": "deps.status == 1"}]},
        "flux.expression",
        "`spec.dependsOn[0].readyExpr`",
    ),
}
"""The spec of each unit, the code of its finding, and what the message names."""
RUN = {"waits", "vacuous", "good"}
"""Units that run although a mistake is reported."""
CIRCLE = ("first", "second")
TERMINAL = "Reconciliation failed terminally due to configuration error: "
CONDITIONS: dict[str, tuple[str, str]] = {
    "nothing": ("DependencyNotReady", _not_found("gone")),
    "kind": ("DependencyNotReady", _not_found("redis")),
    "itself": ("DependencyNotReady", "dependency 'flux-system/itself' is not ready"),
    "first": ("DependencyNotReady", "dependency 'flux-system/second' is not ready"),
    "second": ("DependencyNotReady", "dependency 'flux-system/first' is not ready"),
    "later": ("DependencyNotReady", "dependency 'flux-system/first' is not ready"),
    "variables": (
        "BuildFailed",
        "substitute from 'Secret/vars' error: secrets \"vars\" not found",
    ),
    "bucket": ("ArtifactFailed", ""),
    "far": ("ArtifactFailed", ""),
    "path": (
        "ArtifactFailed",
        "kustomization path not found: stat ./nowhere: no such file or directory",
    ),
    "compile": ("InvalidCELExpression", TERMINAL),
    "ready": ("InvalidCELExpression", TERMINAL),
    "never": ("HealthCheckFailed", ""),
    "unready": (
        "DependencyNotReady",
        "dependency 'flux-system/good' is not ready according to readyExpr eval",
    ),
    "parent": ("ReconciliationFailed", ""),
}
"""The reason of each, and the beginning of its message where that is Flux's own text."""
OWN_TEXT = ("bucket", "far", "compile", "ready", "never", "parent")
"""Those whose message has text of ours."""
STALLED = {"compile", "ready"}


@pytest.fixture
def layers(tmp_path: Path) -> Layers:
    made = Layers(tmp_path / "repository", more=[BUCKET, RELEASE])
    for name in (*BAD, "good", "asleep"):
        made.put(f"{name}/all.yaml", setting(name))
        made.unit(name, **{"path": f"./{name}", **(BAD[name][0] if name in BAD else {})})
    made.unit("asleep", suspend=True)
    made.unit("sealed", decryption={"provider": "sops", "secretRef": {"name": "sops-age"}})
    file = made.write("sealed/s.yaml", "")
    file.write_bytes(encrypt(file, SECRET, AgeKey.generate(), "--encrypted-regex", "^stringData$"))
    return made


def with_a_circle(layers: Layers) -> None:
    for name, after in (*zip(CIRCLE, reversed(CIRCLE), strict=True), ("later", CIRCLE[0])):
        layers.unit(name, after=["good", after])
        layers.put(f"{name}/all.yaml", setting(name))


def findings(ran: Ran) -> list[dict[str, str]]:
    """What a run with `-o json` reported."""
    lines = [json.loads(line) for line in ran.stderr.splitlines()]
    return [line for line in lines if "code" in line]


def finding_of(layers: Layers, name: str, ran: Ran) -> dict[str, str]:
    """The finding of a bad unit: at the lines of that unit, and with its code."""
    _, code, names = BAD[name]
    lines = (layers.root / "clusters/main/all.yaml").read_text().splitlines()
    (named,) = [number for number, line in enumerate(lines, 1) if line == f"  name: {name}"]
    ends = [number for number, line in enumerate(lines, 1) if line == "---"]
    first = max((end for end in ends if end < named), default=0)
    last = min((end for end in ends if end > named), default=len(lines))
    (finding,) = [
        finding
        for finding in findings(ran)
        if finding["code"] == code
        and (location := finding["location"].split(":"))[0] == "clusters/main/all.yaml"
        and first < int(location[1]) <= last
    ]
    assert names in finding["message"], (name, finding)
    return finding


def test_each_mistake_is_a_finding_with_its_location(layers: Layers) -> None:
    ran = layers.run("plan", "--offline", "-o", "json")
    result = [finding_of(layers, name, ran) for name in BAD if name != "variables"]
    with_a_circle(layers)
    circle = layers.run("plan", "--offline", "-o", "json")

    assert (ran.returncode, circle.returncode) == (3, 3)
    assert len(result) == len(BAD) - 1
    (unknown,) = [each for each in findings(ran) if each["code"] == "units.unknown-variables"]
    assert "Secret `flux-system/vars`" in unknown["message"]
    (sealed,) = [each for each in findings(ran) if each["code"] == "render.sops.key"]
    assert (sealed["severity"], sealed["location"]) == ("warning", "sealed/s.yaml:1:1")
    assert "Secret `flux-system/sops-age`" in sealed["fix"]
    (cycle,) = [each for each in findings(circle) if each["code"] == "plan.cycle"]
    first, second = (f"`{UNIT}{name}`" for name in CIRCLE)
    assert (cycle["message"].count(first), cycle["message"].count(second)) == (2, 1)
    assert cycle["location"].startswith("clusters/main/all.yaml:")
    assert cycle["location"].endswith("(spec.dependsOn[1])")


def test_each_mistake_fails_its_unit_and_other_units_continue(layers: Layers) -> None:
    with_a_circle(layers)

    ran = layers.run(
        "sync", "--sandbox", "--empty-cluster", "--skip-broken", "--offline", "-o", "json"
    )

    assert ran.returncode == 4
    begun = {
        step_start.removesuffix("/rest")
        for step_start in begins(ran)
        if step_start.endswith("/rest")
    }
    assert begun >= RUN
    assert not begun & ({*BAD, *CIRCLE, "later"} - RUN)
    ended = {
        str(event["unit"]).rpartition("/")[2]: (event["reason"], str(event.get("message", "")))
        for event in events(ran)
        if event["event"] == "unit.finished"
    }
    for name in BAD.keys() - RUN:
        how, message = ended[name]
        assert (how, message != "") == ("failed", True), (name, ended)
        assert message in finding_of(layers, name, ran)["message"]
    (cycle,) = [each for each in findings(ran) if each["code"] == "plan.cycle"]
    for name in CIRCLE:
        assert ended[name] == ("failed", cycle["message"])
    assert ended["later"][0] == "skipped"
    assert {ended[name][0] for name in RUN} == {"passed"}
    assert "asleep" not in ended


@case(1, 4, 10, 17, 20)
def test_each_mistake_sets_the_conditions_of_flux(
    layers: Layers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wording: RecordedWording
) -> None:
    with_a_circle(layers)
    layers.unit("parent", path="./clusters/main", into="")
    layers.write_units()
    cluster = PersistentSandbox.make(tmp_path, monkeypatch)

    ran = cluster.sync(layers.root, "--empty-cluster", "--skip-broken", "--offline")

    assert ran.code == 4, ran.stdout + ran.stderr
    units = cluster.all(KUSTOMIZATION, "flux-system")
    for name, (reason, message) in CONDITIONS.items():
        ready = condition(units[name], "Ready")
        assert ready is not None, name
        assert (ready[:2], ready[2].startswith(message)) == (("False", reason), True), (name, ready)
        assert (condition(units[name], "Stalled") is not None) == (name in STALLED)
        assert "lastAppliedRevision" not in get_mapping(units[name], "status")
    messages = {name: condition(units[name], "Ready") or () for name in OWN_TEXT}
    wording(f"{name}: {': '.join(parts)}" for name, parts in messages.items())
    for name in RUN:
        ready = condition(units[name], "Ready")
        assert ready is not None
        assert ready[:2] == ("True", "ReconciliationSucceeded")
    assert "lastAttemptedRevision" not in get_mapping(units["path"], "status")
    assert condition(units["asleep"], "Ready") is None
    expected = {(name, reason) for name, (reason, _) in CONDITIONS.items()}
    assert expected <= list_results(cluster, "flux-system")
    before = cluster.versions(KUSTOMIZATION, "flux-system")
    cluster.sync(layers.root, "--empty-cluster", "--skip-broken", "--offline")
    assert cluster.versions(KUSTOMIZATION, "flux-system") == before, "it says so once"


def test_with_flux_semantics_dependents_of_a_mistake_wait_until_the_end(layers: Layers) -> None:
    stuck = BAD.keys() - RUN
    for name in stuck:
        layers.unit(f"after-{name}", after=[name])
        layers.put(f"after-{name}/all.yaml", setting(f"after-{name}"))

    ran = layers.run(
        *("simulate", "--engine", "flux", "--offline", "-o", "json", "--until", "30m"),
        "--empty-cluster",
    )

    assert ran.returncode == 4
    begun = {step_start.partition("/")[0] for step_start in begins(ran)}
    assert begun == {"clusters-main", "good", "vacuous", "sealed"}, "`waits` does for ever"
    skipped = {str(event["step"]) for event in events(ran) if event["event"] == "step.skipped"}
    assert skipped == {f"{UNIT}after-{name}/rest" for name in stuck}
