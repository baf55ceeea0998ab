"""What cannot work is told at its place before anything is written, and is a clear state then."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.flux.repository import UNIT, Layers, begins, events
from tests.fakes.repositories import setting
from tests.unit.render.sops_program import AgeKey, encrypt
from tidegate.model.objects import Json
from tidegate.testing import Body

SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\n"
EMPTY = "status.conditions.filter(e, e.type == 'Ready').{}(e, e.status == 'True')"
BUCKET: Body = {
    "apiVersion": "source.toolkit.fluxcd.io/v1",
    "kind": "Bucket",
    "metadata": {"name": "s3", "namespace": "flux-system"},
    "spec": {"interval": "10m", "bucketName": "x", "endpoint": "s3.example.com"},
}
RELEASE: Body = {
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
        "files in a bucket of a cloud are not fetched",
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


@pytest.fixture
def layers(tmp_path: Path) -> Layers:
    made = Layers(tmp_path, more=[BUCKET, RELEASE])
    for name in (*BAD, "good", "asleep"):
        made.put(f"{name}/all.yaml", setting(name))
        made.unit(name, **BAD.get(name, ({}, ""))[0])
    made.unit("asleep", suspend=True)
    made.unit("sealed", decryption={"provider": "sops", "secretRef": {"name": "sops-age"}})
    file = made.write("sealed/s.yaml", "")
    file.write_bytes(encrypt(file, SECRET, AgeKey.generate(), "--encrypted-regex", "^stringData$"))
    return made


def test_each_is_a_finding_with_its_place(layers: Layers) -> None:
    ran = layers.run("plan", "--offline")

    assert ran.returncode == 3
    blocks = [" ".join(one.split()) for one in ran.stderr.replace("\n  ", " ").splitlines()]
    for name, (_, sentence) in BAD.items():
        told = [one for one in blocks if sentence in one]
        assert told, (name, ran.stderr)
        assert all(" at clusters/main/all.yaml:" in one for one in told), told
    (sealed,) = [one for one in blocks if one.startswith("warning[render.sops.key]")]
    assert " at sealed/s.yaml:1:1" in sealed
    assert "looked at Secret `flux-system/sops-age`: not in the repository" in sealed


def test_each_is_a_clear_state_of_a_run_and_the_others_go_on(layers: Layers) -> None:
    ran = layers.run("sync", "--sandbox", "--greenfield", "--keep-going", "--offline", "-o", "json")

    assert ran.returncode == 4
    begun = {one.removesuffix("/rest") for one in begins(ran) if one.endswith("/rest")}
    assert begun >= RUN
    assert not begun & (BAD.keys() - RUN)
    failed = {
        str(one["step"]).removeprefix(UNIT).removesuffix("/rest"): str(one.get("sentence"))
        for one in events(ran)
        if one["told"] == "step.failed"
    }
    for name in ("itself", "compile", "never", "ready"):
        assert BAD[name][1] in failed[name], failed
