"""Rollouts on a real server that do not finish: each end has its own exit code."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from tests.e2e.conftest import Site
from tests.e2e.output import events_of, lines_with
from tests.support.cluster_client import ClusterClient, require_items, require_live
from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_command import Tidegate
from tidegate.engine.records.storage import TIDEGATE_NAMESPACE
from tidegate.model.k8s.objects import Kind, Ref
from tidegate.world.requests import List, Selection

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]

OVERTAKEN, LATE = 6, 8
CONFIG_MAP, NODE, DEFINITION, LEASE, JOB = (
    Kind("", "v1", "ConfigMap"),
    Kind("", "v1", "Node"),
    Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
    Kind("coordination.k8s.io", "v1", "Lease"),
    Kind("batch", "v1", "Job"),
)
NOTED = 'name: never, annotations: {argocd.argoproj.io/sync-wave: "2"}'
NEVER = """apiVersion: batch/v1
kind: Job
metadata: {name: never}
spec:
  template:
    spec:
      restartPolicy: Never
      nodeSelector: {no-node-is: here}
      containers: [{name: a, image: a}]
"""
DEFINED = f"""apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: things.example.org}}
spec:
  group: example.org
  scope: Namespaced
  names: {{kind: Thing, plural: things, singular: thing, listKind: ThingList}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
---
apiVersion: example.org/v1
kind: Thing
metadata: {{name: first, annotations: {{argocd.argoproj.io/sync-wave: "1"}}}}
---
{NEVER.replace("name: never", NOTED)}---
apiVersion: example.org/v1
kind: Thing
metadata: {{name: last, annotations: {{argocd.argoproj.io/sync-wave: "3"}}}}
"""
PLAIN = """apiVersion: v1
kind: ConfigMap
metadata: {name: plain}
"""
HELD = """apiVersion: v1
kind: ConfigMap
metadata: {name: held, finalizers: [example.org/held]}
"""


def write_unit(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "unit.yaml").write_text(text)
    return folder


async def leases_of(client: ClusterClient) -> list[str]:
    (page,) = await client.ask(List(Selection(LEASE, TIDEGATE_NAMESPACE)))
    return [live.ref.name for live in require_items(page)]


async def test_a_superseded_rollout_reports_it(site: Site, tmp_path: Path) -> None:
    config = site.kubeconfig()
    first = write_unit(tmp_path / "unit", NEVER)
    async with site.client(config) as client:
        target_flags = (
            "--kubeconfig",
            str(config),
            "--namespace",
            client.namespace,
            "--name",
            "ways",
        )
        tidegate = Tidegate(tmp_path / "home")
        waiting = asyncio.create_task(
            tidegate.run("sync", first, "--yes", *target_flags, "-o", "json")
        )
        await client.settled(Ref(JOB, client.namespace, "never"), lambda live: live is not None)
        then = write_unit(tmp_path / "unit", PLAIN)
        second = await Tidegate(tmp_path / "other").run("sync", then, "--yes", *target_flags)
        gave_way = await waiting

    assert gave_way.code == OVERTAKEN, gave_way
    (finished,) = events_of(gave_way.stdout, "rollout.finished")
    assert finished["reason"] == "stopped"
    assert f"`{client.namespace}/ways`" in finished["message"]
    assert "Traceback" not in gave_way.stderr
    assert second.code == 0, second


@pytest.mark.parametrize("output", ["text", "json"])
async def test_a_deletion_that_times_out_lists_the_remaining_objects(
    output: str, site: Site, tmp_path: Path, wording: RecordedWording
) -> None:
    config = site.kubeconfig()
    unit, tidegate = write_unit(tmp_path / "unit", HELD), Tidegate(tmp_path / "home")
    async with site.client(config) as client:
        target_flags = (
            "--kubeconfig",
            str(config),
            "--namespace",
            client.namespace,
            "--name",
            output,
        )
        created = await tidegate.run("sync", unit, "--yes", *target_flags)
        before = await leases_of(client)
        args = ("delete", unit, "--yes", *target_flags, "--timeout", "2s", "-o", output)
        ended = await tidegate.run(*args)
        after = await leases_of(client)
        held = Ref(CONFIG_MAP, client.namespace, "held")
        await client.patch(held, {"metadata": {"finalizers": None}})

    assert created.code == 0, created
    assert ended.code == LATE, ended
    assert "held" in ended.stdout
    if output == "json":
        (explained,) = events_of(ended.stdout, "rollout.explained")
        assert explained["outcome"] == "timed-out"
    else:
        (line,) = [line for line in ended.lines if line.split()[1:2] == ["rollout"]][-1:]
        wording(re.sub(r"\d+\.\d+s", "TIME", line).split(maxsplit=1)[1])
    assert {*after} <= {*before}, "the lease is returned"


@pytest.mark.parametrize("output", ["text", "json"])
async def test_a_rollout_waiting_for_a_lease_names_the_holder_and_the_time(
    output: str, site: Site, tmp_path: Path
) -> None:
    config = site.kubeconfig()
    unit = write_unit(tmp_path / "unit", NEVER)
    async with site.client(config) as client:
        target_flags = (
            "--kubeconfig",
            str(config),
            "--namespace",
            client.namespace,
            "--name",
            output,
        )
        args = ("sync", unit, "--yes", *target_flags, "-o", output)
        first = asyncio.create_task(Tidegate(tmp_path / "home").run(*args, "--timeout", "12s"))
        await client.settled(Ref(JOB, client.namespace, "never"), lambda live: live is not None)
        waited = await Tidegate(tmp_path / "other").run(*args, "--timeout", "3s")
        await first

    assert waited.code == LATE, waited
    messages = (
        [event["message"] for event in events_of(waited.stdout, "unit.waiting")]
        if output == "json"
        else lines_with(waited.stdout, " UTC")
    )
    assert len(messages) > 0
    assert all(re.search(r"`[^`]+`.* \d\d:\d\d:\d\d UTC", message) for message in messages), (
        messages
    )


async def test_a_crd_deleted_during_a_rollout_is_reported_and_the_lease_released(
    site: Site, tmp_path: Path
) -> None:
    """What needs it is tried again for some minutes, and fails: see the hostile tests."""
    config = site.kubeconfig()
    async with site.client(config) as client:
        name = client.namespace
        text = DEFINED.replace("example.org", f"{name}.example.org").replace(": here", f": {name}")
        unit = write_unit(tmp_path / "unit", text)
        target_flags = ("--kubeconfig", str(config), "--namespace", name, "--name", "gone")
        before = await leases_of(client)
        args = ("sync", unit, "--yes", *target_flags, "--timeout", "15s", "-o", "json")
        rolling = asyncio.create_task(Tidegate(tmp_path / "home").run(*args))
        await client.settled(Ref(JOB, name, "never"), lambda live: live is not None)
        await client.delete(Ref(DEFINITION, "", f"things.{name}.example.org"))
        await give_a_node_to(name, client)
        ended = await rolling
        after = await leases_of(client)

    assert ended.code == LATE, ended
    refused = [
        (event["kind"], event["namespace"], event["name"], event["reason"])
        for event in events_of(ended.stdout, "object.refused")
    ]
    assert {*refused} == {("Thing", name, "last", "NotServed")}
    assert len(events_of(ended.stdout, "step.passed")) == 3
    assert "error[bug]" not in ended.stderr
    assert {*after} <= {*before}, "the lease is returned"


async def give_a_node_to(label: str, client: ClusterClient) -> None:
    """Let pods run that wait for a node with this label."""
    (page,) = await client.ask(List(Selection(NODE)))
    node = require_items(page)[0].ref
    require_live(await client.patch(node, {"metadata": {"labels": {"no-node-is": label}}}))
