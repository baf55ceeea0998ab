"""`retry.refresh` on a real API server: what is committed while a sync waits is taken then."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.e2e.test_projects import create_all
from tests.e2e.test_unit_trees import _numbers
from tests.support.dialect_kinds import serve
from tests.support.repositories import Repository, application, namespace, setting
from tests.support.unit_families import Fleet
from tidegate.model.k8s.objects import Json, JsonObject

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]
POLICY = "admissionregistration.k8s.io/v1"


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with ControlPlane.start() as running:
        asyncio.run(serve(running))
        yield running


def policy(name: str, namespace: str) -> tuple[JsonObject, JsonObject]:
    """In a namespace, data that leads nowhere is denied, and only when it is written for good."""
    rules: Json = [
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["configmaps"],
        }
    ]
    selector: Json = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    expression = "request.dryRun || !has(object.data) || object.data.to != 'nowhere'"
    spec: Json = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": rules, "namespaceSelector": selector},
        "validations": [{"expression": expression, "reason": "Forbidden", "message": "nowhere"}],
    }
    binding: Json = {"policyName": name, "validationActions": ["Deny"]}
    metadata: Json = {"name": name}
    return (
        {
            "apiVersion": POLICY,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": metadata,
            "spec": spec,
        },
        {
            "apiVersion": POLICY,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": metadata,
            "spec": binding,
        },
    )


async def test_a_child_is_retried_with_a_newer_commit(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    suffix = f"-r{next(_numbers)}"
    fleet = Fleet(cluster, Repository(tmp_path / "platform", suffix), served=True)
    made = fleet.repository
    backoff: Json = {"duration": "1s", "factor": 1, "maxDuration": "1s"}
    patient: Json = {
        "automated": {"prune": True},
        "retry": {"limit": -1, "refresh": True, "backoff": backoff},
    }
    made.put("bootstrap/root.yaml", application("root", "apps", into="argocd"))
    made.put("apps/web.yaml", application("web", "web", sync=patient))
    made.put("web/all.yaml", setting("early"), setting("web", wave=1, to="nowhere"))
    await create_all(cluster, namespace(f"argocd{suffix}"), namespace(f"shop{suffix}"))
    await create_all(cluster, *policy(f"nowhere{suffix}", f"shop{suffix}"))

    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tidegate", "sync", *map(str, fleet.words)),
        *("--yes", "--timeout", "100s", "-o", "json"),
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        stdout=PIPE,
        stderr=PIPE,
        limit=1 << 22,
    )
    assert process.stdout is not None
    result: list[str] = []
    while line := await process.stdout.readline():
        result.append(json.loads(line)["event"])
        if result.count("retry.scheduled") == 1 and result[-1] == "retry.scheduled":
            made.put("web/all.yaml", setting("early"), setting("web", wave=1, to="home"))
    code = await process.wait()

    assert process.stderr is not None
    document = (await process.stderr.read()).decode()
    assert "retry.scheduled" in result, document
    assert code == 0, document
    assert "rollout.superseded" in result
    written = [name for verb, name in fleet.writes() if name.startswith("configmaps/")]
    assert written.count("configmaps/early") == 1, "what is done is not done again"
    again = await fleet.run("sync", "--yes")
    assert (again.code, again.stdout.count("applied")) == (0, 0), again.stdout
