"""The cluster of `examples/layers`: three Kustomizations, releases, and secrets encrypted by us."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from examples.encrypt import KEY, encrypt_example
from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import ROOT, tidegate

LAYERS = ["infrastructure", "databases", "apps"]
RELEASES = [["cert-manager"], ["postgresql", "redis"], ["authentik"]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with a key of its own."""
    ignored = shutil.ignore_patterns(".keys", "*.enc.yaml")
    place = tmp_path_factory.mktemp("cluster") / "layers"
    root = Path(shutil.copytree(ROOT / "examples" / "layers", place, ignore=ignored))
    encrypt_example(root)
    return root


def test_each_layer_starts_when_the_releases_of_the_previous_one_are_ready(cluster: Path) -> None:
    ran = tidegate("sync", cluster, "--sandbox", "-o", "json", SOPS_AGE_KEY_FILE=str(cluster / KEY))

    assert ran.returncode == 0, ran.stderr
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    ends = {
        event["unit"].rpartition("/")[2]: event["at"]
        for event in events
        if event["event"] == "unit.finished"
    }
    begins: dict[str, int] = {}
    for item in events:
        if item["event"] == "object.written":
            begins.setdefault(item["unit"].rpartition("/")[2], item["at"])
    for releases, layer in zip(RELEASES, LAYERS[1:], strict=False):
        assert max(ends[name] for name in releases) <= begins[layer]


def test_flux_checks_every_thirty_seconds_and_has_the_same_result(
    wording: RecordedWording, cluster: Path
) -> None:
    ran = tidegate("simulate", cluster, SOPS_AGE_KEY_FILE=str(cluster / KEY))

    assert ran.returncode == 0, ran.stderr
    starts = {
        line.split()[0]: line.split()[2]
        for line in ran.stdout.splitlines()
        if line.startswith("Kustomization/") and ": rest" in line
    }
    assert [starts[f"Kustomization/flux-system/{layer}:"] for layer in LAYERS] == [
        "0.0s",
        "30.0s",
        "60.0s",
    ]
    (verdict,) = (line for line in ran.stdout.splitlines() if line.startswith("flux: "))
    wording(verdict)


def test_the_duration_on_a_new_cluster_equals_the_documented_one(cluster: Path) -> None:
    """Subtract the first minute, in which Flux fetches Git: it is not simulated."""
    profile = cluster / "profiles" / "fresh-cluster.yaml"
    key = {"SOPS_AGE_KEY_FILE": str(cluster / KEY)}

    ran = tidegate("simulate", cluster, "--profile", profile, "-o", "json", **key)

    events = [json.loads(line) for line in ran.stdout.splitlines()]
    start = next(event["at"] for event in events if "at" in event)
    minutes: dict[str, dict[str, int]] = {"step.applying": {}, "unit.finished": {}}
    for item in events:
        if item["event"] in minutes and item.get("unit"):
            name = item["unit"].rpartition("/")[2]
            minutes[item["event"]].setdefault(name, 1 + (item["at"] - start) // 60_000)
    begun, ready = minutes.values()
    assert [begun[layer] for layer in LAYERS] == [1, 4, 7]
    assert [ready[name] for name in ("cert-manager", "postgresql", "authentik")] == [3, 6, 9]
    assert 1 + (events[-1]["duration"]) // 60_000 == 10


def test_a_missing_key_is_reported_with_its_file(cluster: Path) -> None:
    ran = tidegate("plan", cluster)

    recipient = (cluster / "gitops/apps/redis/credentials.enc.yaml").read_text()
    (key,) = {line.split()[-1] for line in recipient.splitlines() if "recipient:" in line}
    assert "gitops/apps/redis/credentials.enc.yaml" in ran.stderr
    assert key in ran.stderr
