"""`simulate` rolls out each unit on its own, as Argo CD and Flux do."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.rule_pages import write_files
from tests.support.tidegate_runs import tidegate
from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.k8s.objects import JsonObject

URL = "https://git.example.com/shop/platform.git"
GIT_REPOSITORY = f"""apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {{name: flux-system, namespace: flux-system}}
spec: {{interval: 1m, url: "{URL}", ref: {{branch: main}}}}
"""


def config_map(name: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: default}}\n"


def application(name: str, sync_policy: str = "{automated: {}}") -> str:
    return f"""apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: {name}, namespace: argocd}}
spec:
  project: default
  source: {{repoURL: "{URL}", targetRevision: main, path: {name}}}
  destination: {{server: https://kubernetes.default.svc, namespace: default}}
  syncPolicy: {sync_policy}
"""


def kustomization(name: str, **spec: object) -> str:
    fields = {
        "interval": "1m",
        "path": f"./{name}",
        "prune": True,
        "sourceRef": {"kind": "GitRepository", "name": "flux-system"},
        **spec,
    }
    return (
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n"
        f"metadata: {{name: {name}, namespace: flux-system}}\nspec: {json.dumps(fields)}\n"
    )


def simulated(folder: Path, files: dict[str, str], *words: str) -> tuple[int, list[JsonObject]]:
    """Simulate and return the exit code and the documents."""
    ran = tidegate("simulate", write_files(folder, files), "-o", "json", *words)
    documents = [json.loads(line) for line in ran.stdout.splitlines()]
    findings = [json.loads(line) for line in ran.stderr.splitlines()]
    return ran.returncode, [*documents, *findings]


def written(documents: list[JsonObject]) -> list[tuple[str, str]]:
    return [
        (get_text(document, "unit").rpartition("/")[2], get_text(document, "name"))
        for document in documents
        if document.get("event") == "object.written"
    ]


def codes(documents: list[JsonObject]) -> dict[str, str]:
    return {
        get_text(document, "code"): get_text(document, "severity")
        for document in documents
        if "code" in document
    }


def test_an_invalid_object_fails_its_unit_and_not_the_others(tmp_path: Path) -> None:
    files = {
        "cd/a.yaml": application("a"),
        "cd/b.yaml": application("b"),
        "a/a.yaml": config_map("Not_Valid"),
        "b/b.yaml": config_map("fine"),
    }

    code, documents = simulated(tmp_path, files)

    assert code == 4
    assert written(documents) == [("b", "fine")]
    refused = [item["name"] for item in documents if item.get("event") == "object.refused"]
    assert {*refused} == {"Not_Valid"}


def test_two_applications_write_a_shared_object_and_are_warned(tmp_path: Path) -> None:
    files = {
        "cd/a.yaml": application("a"),
        "cd/b.yaml": application("b"),
        "a/a.yaml": config_map("fine"),
        "b/b.yaml": config_map("fine"),
    }

    code, documents = simulated(tmp_path, files)

    assert code == 0
    assert sorted(written(documents)) == [("a", "fine"), ("b", "fine")]
    assert codes(documents)["units.shared"] == "warning"


def test_an_application_that_fails_on_shared_objects_fails_alone(tmp_path: Path) -> None:
    strict = "{automated: {}, syncOptions: [FailOnSharedResource=true]}"
    files = {
        "cd/a.yaml": application("a", strict),
        "cd/b.yaml": application("b"),
        "a/a.yaml": config_map("fine"),
        "b/b.yaml": config_map("fine"),
    }

    code, documents = simulated(tmp_path, files)

    assert code == 4
    assert written(documents) == [("b", "fine")]
    assert codes(documents)["preflight.shared"] == "error"


def test_two_kustomizations_take_turns_at_a_shared_object(tmp_path: Path) -> None:
    flux = "---\n".join((GIT_REPOSITORY, kustomization("a"), kustomization("b")))
    files = {
        "clusters/prod/flux.yaml": flux,
        "a/a.yaml": config_map("fine"),
        "b/b.yaml": config_map("fine"),
    }

    code, documents = simulated(tmp_path, files)

    assert code == 0
    assert sorted(written(documents)) == [("a", "fine"), ("b", "fine")]
    assert codes(documents)["units.shared"] == "warning"


def test_a_failure_next_to_an_awaited_object_is_explained(tmp_path: Path) -> None:
    """An awaited object has no body: nothing is known of what its operator makes."""
    checks = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "default"},
        {
            "apiVersion": "cert-manager.io/v1",
            "kind": "Certificate",
            "name": "edge",
            "namespace": "default",
        },
    ]
    files = {
        "clusters/prod/flux.yaml": "---\n".join(
            (GIT_REPOSITORY, kustomization("apps", timeout="1m", healthChecks=checks))
        ),
        "apps/web.yaml": """apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: a, image: "a:1", envFrom: [{secretRef: {name: nowhere}}]}]}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: other, namespace: default}
spec: {secretName: other, dnsNames: [a.b], issuerRef: {name: x, kind: ClusterIssuer}}
""",
    }

    code, documents = simulated(tmp_path, files, "--until", "20m")

    failures = [failure for end in documents for failure in get_mappings(end, "failures")]
    assert code == 4
    assert any("nowhere" in str(failure["why"]) for failure in failures)


def ending(documents: list[JsonObject]) -> JsonObject:
    (end,) = (item for item in documents if item.get("event") == "engine.finished")
    return end


def test_nothing_to_apply_is_not_passed(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    code, documents = simulated(tmp_path / "empty", {})
    allowed, _ = simulated(tmp_path / "empty", {}, "--allow-incomplete")

    assert (code, allowed) == (9, 0)
    assert ending(documents)["verdict"] == "incomplete"


def test_units_that_are_left_out_are_named_in_the_verdict(tmp_path: Path) -> None:
    flux = (GIT_REPOSITORY, kustomization("a"), kustomization("b", suspend=True))
    files = {
        "clusters/prod/flux.yaml": "---\n".join(flux),
        "a/a.yaml": config_map("one"),
        "b/b.yaml": config_map("two"),
    }

    code, documents = simulated(tmp_path, files)
    allowed, _ = simulated(tmp_path, files, "--allow-incomplete")

    end = ending(documents)
    assert (code, allowed) == (9, 0)
    assert (end["outcome"], end["verdict"]) == ("passed", "incomplete")
    assert end["skippedUnits"] == ["Kustomization/flux-system/b"]


def test_a_child_that_is_synced_manually_is_left_out(tmp_path: Path) -> None:
    root = application("root")
    files = {
        "cd/root.yaml": root,
        "root/a.yaml": application("a", "{}"),
        "root/b.yaml": application("b"),
        "a/a.yaml": config_map("one"),
        "b/b.yaml": config_map("two"),
    }

    code, documents = simulated(tmp_path, files)

    assert (code, ending(documents)["verdict"]) == (9, "incomplete")
    assert ending(documents)["skippedUnits"] == ["Application/argocd/a"]


def test_an_object_of_the_last_wave_that_stays_unhealthy_is_no_success(tmp_path: Path) -> None:
    """Argo CD does not wait for the last wave: its operation passed, the Application has not."""
    deployment = """apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  progressDeadlineSeconds: 60
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: a, image: "a:1", envFrom: [{secretRef: {name: nowhere}}]}]}
"""
    files = {"cd/a.yaml": application("a"), "a/a.yaml": deployment}

    code, documents = simulated(tmp_path, files)

    end = ending(documents)
    assert (code, end["outcome"], end["verdict"]) == (4, "passed", "degraded")
    assert [item["name"] for item in get_mappings(end, "failedAfterwards")] == ["web"]


def test_an_object_that_an_unknown_chart_may_create_is_assumed_to_be_ready(tmp_path: Path) -> None:
    release = """apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: multus, namespace: default}
spec: {interval: 1h, chartRef: {kind: OCIRepository, name: multus}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: multus, namespace: default}
spec: {interval: 1h, url: "oci://registry.example.invalid/multus", ref: {tag: "1"}}
"""
    check = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "name": "multus",
        "namespace": "default",
    }
    files = {
        "clusters/prod/flux.yaml": "---\n".join(
            (GIT_REPOSITORY, kustomization("net", healthChecks=[check]))
        ),
        "net/release.yaml": release,
    }

    code, documents = simulated(tmp_path, files, "--offline", "--until", "20m")

    assert (code, ending(documents)["verdict"]) == (9, "incomplete")
    assert codes(documents)["units.check-assumed"] == "note"
