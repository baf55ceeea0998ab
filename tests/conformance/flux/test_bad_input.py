"""What cannot work is told at its place before anything is written, and is a clear state then."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.flux.stage import case
from tests.support.flux_repository import UNIT, Layers, begins, events
from tests.support.kept_sandbox import KUSTOMIZATION, KeptSandbox
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


BAD: dict[str, tuple[dict[str, Json], str]] = {
    "nothing": ({"dependsOn": [{"name": "gone"}]}, f"depends on `{UNIT}gone`, which is not there"),
    "kind": ({"dependsOn": [{"name": "redis"}]}, f"depends on `{UNIT}redis`, which is not there"),
    "itself": ({"dependsOn": [{"name": "itself"}]}, "`spec.dependsOn[0]` is the unit itself"),
    "variables": (
        {"postBuild": {"substituteFrom": [{"kind": "Secret", "name": "vars"}]}},
        "needs Secret `vars`, which is not in the repository",
    ),
    "waits": ({"dependsOn": [{"name": "asleep"}]}, f"does not wait for `{UNIT}asleep`"),
    "bucket": (
        {"sourceRef": {"kind": "Bucket", "name": "s3"}},
        "it is not in the cache, and the network is not to be used",
    ),
    "far": (
        {"sourceRef": {"kind": "GitRepository", "name": "nowhere"}},
        "nothing here declares `GitRepository/flux-system/nowhere`",
    ),
    "path": ({"path": "./nowhere"}, "there is no `nowhere`"),
    "unready": (
        {"dependsOn": [{"name": "good", "readyExpr": "dep.status.observedGeneration == 7"}]},
        "`spec.dependsOn[0].readyExpr` is never true",
    ),
    "compile": (
        {"healthCheckExprs": [{"apiVersion": "v1", "kind": "ConfigMap", "current": "data.to = 1"}]},
        "`spec.healthCheckExprs[0].current` cannot be used",
    ),
    "vacuous": (
        {"healthCheckExprs": [{"apiVersion": "a/v1", "current": EMPTY.format("all")}]},
        "is true of an object that has no conditions yet",
    ),
    "never": (
        {"healthCheckExprs": [{"apiVersion": "a/v1", "current": "[].exists(e, e == 'True')"}]},
        "`spec.healthCheckExprs[0].current` is never true",
    ),
    "ready": (
        {"dependsOn": [{"name": "good", "readyExpr": "deps.status == 1"}]},
        "`spec.dependsOn[0].readyExpr` cannot be used",
    ),
}
RUN = {"waits", "vacuous", "good"}
"""Those that are told of, and go on all the same."""
CIRCLE = ("first", "second")
TERMINAL = "Reconciliation failed terminally due to configuration error: "
SAID: dict[str, tuple[str, str]] = {
    "nothing": ("DependencyNotReady", _not_found("gone")),
    "kind": ("DependencyNotReady", _not_found("redis")),
    "itself": ("DependencyNotReady", "dependency 'flux-system/itself' is not ready"),
    "first": ("DependencyNotReady", "dependency 'flux-system/second' is not ready"),
    "second": ("DependencyNotReady", "dependency 'flux-system/first' is not ready"),
    "behind": ("DependencyNotReady", "dependency 'flux-system/first' is not ready"),
    "variables": (
        "BuildFailed",
        "substitute from 'Secret/vars' error: secrets \"vars\" not found",
    ),
    "bucket": ("ArtifactFailed", "it is not in the cache, and the network is not to be used"),
    "far": ("ArtifactFailed", "nothing here declares `GitRepository/flux-system/nowhere`"),
    "path": (
        "ArtifactFailed",
        "kustomization path not found: stat ./nowhere: no such file or directory",
    ),
    "compile": ("InvalidCELExpression", f"{TERMINAL}`spec.healthCheckExprs[0].current` cannot"),
    "ready": ("InvalidCELExpression", f"{TERMINAL}`spec.dependsOn[0].readyExpr` cannot be used"),
    "never": ("HealthCheckFailed", "`spec.healthCheckExprs[0].current` is never true"),
    "unready": (
        "DependencyNotReady",
        "dependency 'flux-system/good' is not ready according to readyExpr eval",
    ),
    "parent": ("ReconciliationFailed", f"`{UNIT}bucket` did not pass"),
}
"""What each says of itself, in Flux's words, where a cluster serves its kind."""
STALLED = {"compile", "ready"}


@pytest.fixture
def layers(tmp_path: Path) -> Layers:
    made = Layers(tmp_path / "repository", more=[BUCKET, RELEASE])
    for name in (*BAD, "good", "asleep"):
        made.put(f"{name}/all.yaml", setting(name))
        made.unit(name, **{"path": f"./{name}", **BAD.get(name, ({}, ""))[0]})
    made.unit("asleep", suspend=True)
    made.unit("sealed", decryption={"provider": "sops", "secretRef": {"name": "sops-age"}})
    file = made.write("sealed/s.yaml", "")
    file.write_bytes(encrypt(file, SECRET, AgeKey.generate(), "--encrypted-regex", "^stringData$"))
    return made


def with_a_circle(layers: Layers) -> None:
    for name, after in (*zip(CIRCLE, reversed(CIRCLE), strict=True), ("behind", CIRCLE[0])):
        layers.unit(name, after=["good", after])
        layers.put(f"{name}/all.yaml", setting(name))


def test_each_is_a_finding_with_its_place(layers: Layers) -> None:
    ran = layers.run("plan", "--offline")
    with_a_circle(layers)
    circle = layers.run("plan", "--offline")

    assert (ran.returncode, circle.returncode) == (3, 3)
    blocks = [" ".join(line.split()) for line in ran.stderr.replace("\n  ", " ").splitlines()]
    for name, (_, sentence) in BAD.items():
        messages = [block for block in blocks if sentence in block]
        assert messages, (name, ran.stderr)
        assert all(" at clusters/main/all.yaml:" in item for item in messages), messages
    (sealed,) = [block for block in blocks if block.startswith("warning[render.sops.key]")]
    assert " at sealed/s.yaml:1:1" in sealed
    assert "looked at Secret `flux-system/sops-age`: not in the repository" in sealed
    first, second = (f"`{UNIT}{name}`" for name in CIRCLE)
    assert f"units wait for each other: {first} waits for {second} waits for {first}" in (
        circle.stderr
    )
    assert " at clusters/main/all.yaml:" in circle.stderr
    assert "(spec.dependsOn[1])" in circle.stderr


def test_each_is_a_clear_state_of_a_run_and_the_others_go_on(layers: Layers) -> None:
    with_a_circle(layers)

    ran = layers.run(
        "sync", "--sandbox", "--empty-cluster", "--skip-broken", "--offline", "-o", "json"
    )

    assert ran.returncode == 4
    begun = {begin.removesuffix("/rest") for begin in begins(ran) if begin.endswith("/rest")}
    assert begun >= RUN
    assert not begun & ({*BAD, *CIRCLE, "behind"} - RUN)
    ended = {
        str(event["unit"]).rpartition("/")[2]: (event["reason"], str(event.get("message", "")))
        for event in events(ran)
        if event["event"] == "unit.finished"
    }
    for name in BAD.keys() - RUN:
        how, sentence = ended[name]
        assert (how, BAD[name][1] in sentence) == ("failed", True), (name, ended)
    for name in CIRCLE:
        assert (ended[name][0], "wait for each other" in ended[name][1]) == ("failed", True)
    assert ended["behind"][0] == "skipped"
    assert {ended[name][0] for name in RUN} == {"passed"}
    assert "asleep" not in ended


@case(1, 4, 10, 17, 20)
def test_each_says_so_itself_in_the_words_of_flux(
    layers: Layers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_a_circle(layers)
    layers.unit("parent", path="./clusters/main", into="")
    layers.write_units()
    cluster = KeptSandbox.make(tmp_path, monkeypatch)

    ran = cluster.sync(layers.root, "--empty-cluster", "--skip-broken", "--offline")

    assert ran.code == 4, ran.stdout + ran.stderr
    units = cluster.all(KUSTOMIZATION, "flux-system")
    for name, (reason, message) in SAID.items():
        ready = condition(units[name], "Ready")
        assert ready is not None, name
        assert (ready[:2], ready[2].startswith(message)) == (("False", reason), True), (name, ready)
        assert (condition(units[name], "Stalled") is not None) == (name in STALLED)
        assert "lastAppliedRevision" not in get_mapping(units[name], "status")
    for name in RUN:
        ready = condition(units[name], "Ready")
        assert ready is not None
        assert ready[:2] == ("True", "ReconciliationSucceeded")
    assert "lastAttemptedRevision" not in get_mapping(units["path"], "status")
    assert condition(units["asleep"], "Ready") is None
    told_of = {(name, reason) for name, (reason, _) in SAID.items()}
    assert told_of <= list_results(cluster, "flux-system")
    before = cluster.versions(KUSTOMIZATION, "flux-system")
    cluster.sync(layers.root, "--empty-cluster", "--skip-broken", "--offline")
    assert cluster.versions(KUSTOMIZATION, "flux-system") == before, "it says so once"


def test_by_flux_they_hold_what_is_behind_them_to_the_end(layers: Layers) -> None:
    stuck = BAD.keys() - RUN
    for name in stuck:
        layers.unit(f"after-{name}", after=[name])
        layers.put(f"after-{name}/all.yaml", setting(f"after-{name}"))

    ran = layers.run(
        *("simulate", "--engine", "flux", "--offline", "-o", "json", "--until", "30m"),
        "--empty-cluster",
    )

    assert ran.returncode == 4
    begun = {begin.partition("/")[0] for begin in begins(ran)}
    assert begun == {"clusters-main", "good", "vacuous", "sealed"}, "`waits` does for ever"
    skipped = {str(event["step"]) for event in events(ran) if event["event"] == "step.skipped"}
    assert skipped == {f"{UNIT}after-{name}/rest" for name in stuck}
