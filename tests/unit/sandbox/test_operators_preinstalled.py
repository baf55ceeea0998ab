"""Preinstalled operators: CRDs, and workloads that run from the first moment."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.cluster_client import ClusterClient, require_body, require_live
from tests.support.objects import a_namespace, an_object
from tidegate.knowledge.catalog import pluralize_kind, selects_workload
from tidegate.knowledge.reader import load_builtin_knowledge
from tidegate.model.k8s.json_fields import get_mapping, get_mappings
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.model.operators.rows import KindRow, Operator, Stage
from tidegate.model.times import MINUTE, Ms
from tidegate.sandbox.bootstrap import load_base_objects
from tidegate.sandbox.controller_set import build_controllers
from tidegate.sandbox.kinds import WORKLOADS
from tidegate.sandbox.node.profile_file import default_profile
from tidegate.sandbox.operators.availability import is_available
from tidegate.sandbox.operators.preinstalled import (
    InstalledOperator,
    crds_for_row,
    instant_start_rules,
    merge_objects,
    operator_objects,
    settle_preinstalled,
    workload_body,
)
from tidegate.sandbox.server.store import StoredObject
from tidegate.sandbox.world import Sandbox
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import ApiResources
from tidegate.world.requests import Discover
from tidegate.world.resilient import ResilientWorld

OPERATORS = {operator.name: operator for operator in load_builtin_knowledge().operators}
DEPLOYMENT = Kind("apps", "v1", "Deployment")
SLICE = Kind("discovery.k8s.io", "v1", "EndpointSlice")
EXTERNAL = Kind("external-secrets.io", "v1", "ExternalSecret")
STORE = Kind("external-secrets.io", "v1", "SecretStore")
JOB = Kind("batch", "v1", "Job")


def a_row(*kinds: str, **parts: Json) -> KindRow:
    body: JsonObject = {
        "group": "widgets.example.com",
        "kinds": [*kinds],
        "versions": ["v1", "v1beta1"],
        "source": "the test",
        **parts,
    }
    return msgspec.convert({**body, "stages": [{"name": "known"}]}, KindRow)


def a_cluster(*operators: Operator) -> Sandbox:
    """A running cluster with these operators."""
    installed = [InstalledOperator(operator, operator.namespace) for operator in operators]
    controllers = build_controllers(
        default_profile().with_rules(instant_start_rules(installed)), load_builtin_knowledge()
    )
    sandbox = Sandbox(controllers=controllers)
    sandbox.preload(
        merge_objects(
            load_base_objects(), operator_objects(installed, load_builtin_knowledge().rows)
        )
    )
    cluster = sandbox.clusters[""]
    places = [item.namespace for item in installed]
    settle_preinstalled(
        cluster.reader, cluster.preload, controllers, namespaces=places, now=sandbox.now()
    )
    return sandbox


def workloads_of(sandbox: Sandbox) -> list[StoredObject]:
    view = sandbox.clusters[""].reader
    return [stored for kind in WORKLOADS for stored in view.list_objects(kind)]


async def wait(sandbox: Sandbox, span: Ms) -> None:
    until = Ms(sandbox.now() + span)
    while sandbox.now() < until:
        await sandbox.wait(until)


def test_a_crd_accepts_any_spec_and_has_the_names_of_its_kind() -> None:
    crd, other = crds_for_row(a_row("Policy", "Gateway", cluster_wide=["Policy"]))

    spec = get_mapping(crd, "spec")
    assert get_mapping(crd, "metadata")["name"] == "policies.widgets.example.com"
    assert get_mapping(spec, "names") == {
        "kind": "Policy",
        "listKind": "PolicyList",
        "plural": "policies",
        "singular": "policy",
    }
    assert (spec["scope"], get_mapping(other, "spec")["scope"]) == ("Cluster", "Namespaced")
    versions = get_mappings(spec, "versions")
    assert [(version["name"], version["served"], version["storage"]) for version in versions] == [
        ("v1", True, True),
        ("v1beta1", True, False),
    ]
    assert all(version["subresources"] == {"status": {}} for version in versions)


def test_a_kind_may_have_a_plural_of_its_own_and_no_status_subresource() -> None:
    (crd,) = crds_for_row(a_row("Datum", plurals={"Datum": "data"}, statusless=["Datum"]))

    assert get_mapping(crd, "metadata")["name"] == "data.widgets.example.com"
    assert "subresources" not in get_mappings(crd, "spec", "versions")[0]


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("Certificate", "certificates"),
        ("GatewayClass", "gatewayclasses"),
        ("Gateway", "gateways"),
        ("Prometheus", "prometheuses"),
        ("ClusterPolicy", "clusterpolicies"),
        ("GlobalContextEntry", "globalcontextentries"),
        ("SSHKey", "sshkeys"),
        ("Kafka", "kafkas"),
    ],
)
def test_a_plural_is_the_english_one(kind: str, plural: str) -> None:
    assert pluralize_kind(kind) == plural


@pytest.mark.parametrize(
    "row",
    [row for row in load_builtin_knowledge().rows if row.operator],
    ids=lambda row: f"{row.kinds[0]}.{row.group}",
)
def test_every_row_is_served_by_a_workload_of_its_operator(row: KindRow) -> None:
    workloads = OPERATORS[row.operator].workloads

    assert any(
        selects_workload(row.served_by, workload_body(workload, "there")) for workload in workloads
    )


@pytest.mark.parametrize(
    "operator", load_builtin_knowledge().operators, ids=lambda operator: operator.name
)
def test_a_service_of_an_operator_selects_one_of_its_workloads(operator: Operator) -> None:
    labels = [workload.labels for workload in operator.workloads]

    lost = [
        service.name
        for service in operator.services
        if not any(service.selector.items() <= known.items() for known in labels)
    ]

    assert lost == []
    assert any(row.operator == operator.name for row in load_builtin_knowledge().rows)


def test_objects_of_the_user_take_precedence_and_namespaces_and_crds_are_first() -> None:
    namespace: JsonObject = {**a_namespace("shop"), "spec": {}}
    crd: JsonObject = {
        **an_object(Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"), "x")
    }
    web = an_object(DEPLOYMENT, "web")

    bodies = merge_objects([a_namespace("shop"), web], [crd, namespace])

    assert bodies == [namespace, crd, web]


async def test_preinstalled_operators_are_ready_at_the_start() -> None:
    sandbox = a_cluster(*load_builtin_knowledge().operators)
    view = sandbox.clusters[""].reader
    before = workloads_of(sandbox)
    slices = view.list_objects(SLICE)

    await wait(sandbox, Ms(5 * MINUTE))

    assert len(before) == sum(
        len(operator.workloads) for operator in load_builtin_knowledge().operators
    )
    assert all(is_available(workload) for workload in before)
    assert workloads_of(sandbox) == before
    assert view.list_objects(SLICE) == slices
    assert all(get_mappings(item.body, "endpoints") for item in slices)


async def test_every_kind_of_an_operator_is_served_in_all_its_versions() -> None:
    sandbox = a_cluster(OPERATORS["gateway-api"])

    (catalogue,) = await ClusterClient(Dispatcher(ResilientWorld(sandbox))).ask(Discover())

    assert isinstance(catalogue, ApiResources)
    by_name = {
        (served.kind.version, served.kind.name): served.namespaced
        for served in catalogue.kinds
        if served.kind.group == "gateway.networking.k8s.io"
    }
    assert by_name["v1", "GatewayClass"] is False
    assert by_name["v1beta1", "HTTPRoute"] is True
    assert by_name["v1alpha2", "TCPRoute"] is True
    assert ("v1", "TCPRoute") not in by_name


async def test_an_operator_can_run_in_another_namespace() -> None:
    operator = OPERATORS["sealed-secrets"]

    bodies = operator_objects(
        [InstalledOperator(operator, "vaults")], load_builtin_knowledge().rows
    )

    places = {str(get_mapping(body, "metadata").get("namespace", "")) for body in bodies}
    assert places == {"", "vaults"}
    assert (bodies[0]["kind"], get_mapping(bodies[0], "metadata")["name"]) == (
        "Namespace",
        "vaults",
    )


async def test_a_pod_finds_every_key_in_a_secret_whose_keys_cannot_be_known() -> None:
    sandbox = a_cluster(OPERATORS["external-secrets"])
    client = ClusterClient(Dispatcher(ResilientWorld(sandbox)), namespace="default")
    require_live(await client.create(an_object(STORE, "fake", spec={"provider": {"fake": {}}})))
    spec: JsonObject = {
        "secretStoreRef": {"name": "fake"},
        "dataFrom": [{"extract": {"key": "web"}}],
    }
    require_live(await client.create(an_object(EXTERNAL, "web", spec=spec)))
    variable: Json = {"name": "T", "valueFrom": {"secretKeyRef": {"name": "web", "key": "token"}}}
    container: Json = {"name": "run", "image": "run:1", "env": [variable]}
    pod: JsonObject = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    ref = require_live(await client.create(an_object(JOB, "run", spec={"template": pod}))).ref

    await wait(sandbox, Ms(MINUTE))

    assert get_mapping(require_body(await client.get(ref)), "status")["succeeded"] == 1


def test_the_paces_of_a_stage_decide_its_duration() -> None:
    paces: Json = [{"name": "big-*", "after": 9}, {"kind": "Gadget", "after": 3}]
    stage = msgspec.convert({"name": "ready", "after": 1, "paces": paces}, Stage)
    widget, gadget = (Kind("widgets.example.com", "v1", name) for name in ("Widget", "Gadget"))

    spans = [
        stage.duration_for(Ref(kind, "shop", name))
        for kind, name in ((widget, "it"), (widget, "big-one"), (gadget, "big-one"))
    ]

    assert spans == [1, 9, 3]
