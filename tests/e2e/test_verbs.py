"""The verbs of Flux that ask a controller, on a real API server whose kinds have real schemas."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.e2e.output import lines_with
from tests.e2e.test_statuses import bodies, fleet, layers, shown
from tests.support.live_statuses import commit
from tests.support.tidegate_command import CommandResult, Tidegate
from tests.support.unit_families import Fleet
from tidegate.model.k8s.json_fields import get_mapping, get_text, get_value
from tidegate.model.k8s.objects import Json

__all__ = ["fleet"]
pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]
REQUESTED = "reconcile.fluxcd.io/requestedAt"


async def run(fleet: Fleet, *words: str) -> CommandResult:
    root, *target = fleet.words
    user = Tidegate(fleet.repository.root.parent)
    return await user.run(*words, "-C", str(root), *map(str, target))


def a_flux(fleet: Fleet) -> str:
    """A pod with the name of a Flux controller that never runs; the test answers for it."""
    namespace = f"flux-system{fleet.repository.suffix}"
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "flux",
            "namespace": namespace,
            "labels": {"app": "kustomize-controller"},
        },
        "spec": {"containers": [{"name": "manager", "image": "x"}], "nodeName": "nowhere"},
    }
    path = Path(fleet.repository.root.parent) / "flux.json"
    path.write_text(json.dumps(pod))
    shown(fleet, "apply", "-f", str(path))
    return namespace


async def answer(fleet: Fleet, name: str, namespace: str) -> None:
    """Report once that the request is done."""
    text, unit_resource = "", dict[str, Json]()
    while not text:
        result = await asyncio.to_thread(bodies, fleet, "kustomizations", "flux-system")
        unit_resource = next(item for item in result if get_text(item, "metadata", "name") == name)
        text = get_text(unit_resource, "metadata", "annotations", REQUESTED)
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "ReconciliationSucceeded",
        "message": "Applied revision: main@sha1:abc",
        "lastTransitionTime": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
    }
    status = {
        **get_mapping(unit_resource, "status"),
        "conditions": [ready],
        "lastHandledReconcileAt": text,
        "lastAppliedRevision": "main@sha1:abc",
        "observedGeneration": get_value(unit_resource, "metadata", "generation"),
    }
    patch = (
        "patch",
        "kustomization",
        name,
        "-n",
        namespace,
        "--subresource=status",
        "--type=merge",
    )
    await asyncio.to_thread(shown, fleet, *patch, "-p", json.dumps({"status": status}))


async def test_units_of_an_active_controller_are_suspended_resumed_and_reconciled(
    fleet: Fleet,
) -> None:
    layers(fleet.repository)
    commit(fleet.repository.root)
    first = await fleet.run("sync", "--yes")
    assert first.code == 0, first.stdout + first.stderr

    suspended = await run(fleet, "flux", "suspend", "ks", "apps")
    left = await fleet.run("sync", "--yes")
    resumed = await run(fleet, "flux", "resume", "ks", "apps")
    namespace = a_flux(fleet)
    request = asyncio.create_task(run(fleet, "flux", "reconcile", "ks", "apps", "--timeout", "60s"))
    await answer(fleet, "apps", namespace)
    ran = await request
    events = await run(fleet, "flux", "events", "--for", "ks/apps", "-o", "json")

    assert suspended.code == 0, suspended.stderr
    assert lines_with(left.stderr, "note[units.suspended]", f"`Kustomization/{namespace}/apps`")
    assert resumed.code == 0, resumed.stderr
    assert ran.code == 0, ran.stdout + ran.stderr
    assert ran.stderr.splitlines()[-1] == "✔ applied revision main@sha1:abc"
    messages = [json.loads(line) for line in events.stdout.splitlines()]
    assert "Kustomization/apps" in {item["object"] for item in messages}
