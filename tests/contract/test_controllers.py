"""Promises about clusters that live: the facts of a table, and those that take their time.

Where a kubelet is needed it is ours on every world: what it writes is assumed, what controllers
make of it is not.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from plane import ControlPlane
from tests.contract.controlled_sandbox import a_living_sandbox, a_real_cluster
from tests.contract.facts import (
    FACTS,
    Fact,
    a_late_class,
    a_pod,
    a_pod_with_claim,
    holds,
    is_about,
    is_expected_event,
)
from tests.support.cluster_client import ClusterClient, require_body, require_items, require_live
from tests.support.objects import POD, a_claim, a_container, a_job, at
from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.k8s.objects import Json, JsonObject, Kind, LiveObject, Ref
from tidegate.world.messages import Outcome
from tidegate.world.requests import Selection

EVENT = Kind("", "v1", "Event")
WORLDS = ["sandbox", "served", pytest.param("kube", marks=pytest.mark.kube)]
URL: Json = {"name": "URL", "valueFrom": {"secretKeyRef": {"name": "db", "key": "url"}}}


@pytest.fixture(scope="module")
def bare_plane() -> Iterator[ControlPlane]:
    """A control plane on which no kubelet runs the pods."""
    with ControlPlane.start(runs_pods=False) as running:
        yield running


@pytest.fixture(params=WORLDS)
async def controlled(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[ClusterClient]:
    """A cluster with controllers and a scheduler."""
    if request.param != "kube":
        async with a_living_sandbox(
            served=request.param == "served", state_directory=tmp_path
        ) as client:
            yield client
        return
    plane = request.getfixturevalue("bare_plane")
    assert isinstance(plane, ControlPlane)
    async with a_real_cluster(plane, has_kubelet=False) as client:
        yield client


@pytest.fixture(params=WORLDS)
async def inhabited(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ClusterClient]:
    """The same with our kubelet."""
    if request.param != "kube":
        async with a_living_sandbox(
            served=request.param == "served", state_directory=tmp_path
        ) as client:
            yield client
        return
    plane = request.getfixturevalue("bare_plane")
    assert isinstance(plane, ControlPlane)
    async with a_real_cluster(plane, has_kubelet=True) as client:
        yield client


def read(live: LiveObject | None) -> JsonObject:
    body: JsonObject = {} if live is None else msgspec.json.decode(live.body)
    return body


async def events(client: ClusterClient) -> list[JsonObject]:
    return [
        read(live) for live in require_items(await client.page(Selection(EVENT, client.namespace)))
    ]


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.name)
async def test_a_recorded_fact_holds_for_an_object(controlled: ClusterClient, fact: Fact) -> None:
    namespace = controlled.namespace

    for body in fact.given:
        require_live(await controlled.apply(body))

    ref = Ref(fact.kind, namespace, "web")
    await controlled.settled(ref, lambda live: holds(fact, read(live), namespace))
    if fact.event is not None:
        await controlled.eventually(
            lambda: controlled.page(Selection(EVENT, namespace)),
            lambda page: _has_event(fact, page, namespace),
        )


def _has_event(fact: Fact, page: Outcome, namespace: str) -> bool:
    return fact.event is not None and any(
        is_about(event, fact) and is_expected_event(fact.event, event, namespace)
        for event in map(read, require_items(page))
    )


async def test_a_claim_that_waits_for_a_pod_is_bound_when_it_is_created(
    controlled: ClusterClient,
) -> None:
    require_live(await controlled.apply(a_late_class()))
    claim = require_live(await controlled.apply(a_claim(storageClassName="later"))).ref
    await controlled.settled(claim, is_in("Pending"))

    pod = require_live(await controlled.apply(a_pod_with_claim())).ref

    await controlled.settled(claim, is_in("Bound"))
    placed = await controlled.settled(pod, lambda live: bool(at(read(live), "spec", "nodeName")))
    assert not [event for event in await events(controlled) if get_text(event, "type") == "Warning"]
    assert at(read(placed), "status", "phase") in ("Pending", "Running")


async def test_a_missing_secret_spends_the_deadline_of_a_job_and_not_its_failures(
    inhabited: ClusterClient,
) -> None:
    container = {**a_container("run"), "env": [URL]}
    pod: JsonObject = {"restartPolicy": "Never", "containers": [container]}
    job = a_job(template={"spec": pod}, backoffLimit=0, activeDeadlineSeconds=5)

    ref = require_live(await inhabited.apply(job)).ref
    held = await inhabited.eventually(
        lambda: inhabited.page(Selection(POD, inhabited.namespace)),
        lambda page: any(
            b"CreateContainerConfigError" in item.body for item in require_items(page)
        ),
    )
    meanwhile = require_body(await inhabited.get(ref))
    ended = await inhabited.settled(ref, has_failed)

    mappings = get_mappings(read(require_items(held)[0]), "status", "containerStatuses")
    assert [at(item, "state", "waiting", "message") for item in mappings] == [
        'secret "db" not found'
    ]
    assert at(meanwhile, "status", "active") == 1
    assert at(meanwhile, "status", "failed") is None
    reasons = [
        get_text(condition, "reason")
        for condition in get_mappings(read(ended), "status", "conditions")
    ]
    assert set(reasons) == {"DeadlineExceeded"}


async def test_a_missing_pull_secret_holds_nothing_up(inhabited: ClusterClient) -> None:
    pod = require_live(await inhabited.apply(a_pod(imagePullSecrets=[{"name": "missing"}]))).ref

    await inhabited.settled(pod, is_in("Running"))

    # Pods of a new namespace may wait for the ConfigMap that all of them mount.
    messages = [
        get_text(event, "message")
        for event in await events(inhabited)
        if get_text(event, "type") == "Warning"
    ]
    assert not [item for item in messages if "missing" in item]


def has_failed(live: LiveObject | None) -> bool:
    conditions = get_mappings(read(live), "status", "conditions")
    return any(get_text(condition, "type") == "Failed" for condition in conditions)


def is_in(phase: str) -> Callable[[LiveObject | None], bool]:
    return lambda live: at(read(live), "status", "phase") == phase
