"""Validation beyond types, of CRDs and built-in objects, with the messages of the server."""

from __future__ import annotations

import pytest

from plane import ControlPlane
from tests.e2e.schema_bodies import (
    CLAIM,
    CONFIG_MAP,
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    INGRESS,
    JOB,
    POD,
    ROLE_BINDING,
    SECRET,
    SELECTOR,
    SERVICE,
    STATEFUL_SET,
    TEMPLATE,
    a_definition,
    a_keyed_list,
    a_schema,
    a_version,
    an_object,
)
from tests.e2e.test_schemas import answers, causes_of, kind_of
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.schema.validation.definitions import find_definition_problems
from tidegate.schema.validation.requirements import MAX_DATA_BYTES, find_requirement_problems
from tidegate.world.requests import Verb

pytestmark = pytest.mark.kube

TEXT: JsonObject = {"type": "string"}
EMBEDDED = "x-kubernetes-embedded-resource"
LIST_TYPE, LIST_KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"


def of_fields(**fields: Json) -> JsonObject:
    return a_definition(a_version(a_schema(**fields)))


DEFINITIONS: dict[str, JsonObject] = {
    "nothing wrong": of_fields(a=TEXT),
    "no schema": a_definition(a_version(None)),
    "no schema in one of two": a_definition(
        a_version(a_schema()), a_version(None, "v2", storage=False)
    ),
    "no type at the root": a_definition(a_version({"properties": {}})),
    "a string at the root": a_definition(a_version(TEXT)),
    "a map at the root": a_definition(a_version({"type": "object", "additionalProperties": TEXT})),
    "no type of a field": of_fields(a={}),
    "no type of items": of_fields(a={"type": "array", "items": {}}),
    "no items": of_fields(a={"type": "array"}),
    "several at once": of_fields(a={}, b={"type": "array"}, c={"type": "array", "items": {}}),
    "a type that is none": of_fields(a={"type": "text"}),
    "a default of another type": of_fields(a={"type": "string", "default": 5}),
    "a default with unknown fields": of_fields(
        a={"type": "object", "default": {"x": 1}, "properties": {"y": TEXT}}
    ),
    "no keys": of_fields(a=a_keyed_list(name=TEXT)),
    "an unknown key": of_fields(a=a_keyed_list("z", name=TEXT)),
    "a key that may be missing": of_fields(a=a_keyed_list("n", name=TEXT, n=TEXT)),
    "a key that is an object": of_fields(a=a_keyed_list("name", name={"type": "object"})),
    "keys of strings": of_fields(a={**a_keyed_list("name"), "items": TEXT}),
    "a list type that is none": of_fields(a={"type": "array", LIST_TYPE: "foo", "items": TEXT}),
    "a list type of a string": of_fields(a={**TEXT, LIST_TYPE: "set"}),
    "a set of objects": of_fields(
        a={"type": "array", LIST_TYPE: "set", "items": {"type": "object"}}
    ),
    "keys without a list type": of_fields(a={"type": "array", LIST_KEYS: ["n"], "items": TEXT}),
    "a map type that is none": of_fields(a={"type": "object", "x-kubernetes-map-type": "foo"}),
    "fields and a map": of_fields(
        a={"type": "object", "properties": {"x": TEXT}, "additionalProperties": TEXT}
    ),
    "a reference": of_fields(a={"$ref": "#/x"}),
    "unique items": of_fields(a={"type": "array", "items": TEXT, "uniqueItems": True}),
    "metadata": a_definition(
        a_version(
            {
                "type": "object",
                "properties": {
                    "metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}
                },
            }
        )
    ),
    "embedded without fields": of_fields(a={"type": "object", EMBEDDED: True}),
    "embedded without a type": of_fields(a={EMBEDDED: True}),
    "unknown fields kept everywhere": a_definition(
        a_version(a_schema()), preserveUnknownFields=True
    ),
    "another name": {**of_fields(a=TEXT), "metadata": {"name": "others.schemas.example.org"}},
    "no scope": a_definition(a_version(a_schema()), scope=""),
    "a scope that is none": a_definition(a_version(a_schema()), scope="Planet"),
    "no kind": a_definition(a_version(a_schema()), names={"plural": "samples"}),
    "a wrong schema in one of two": a_definition(
        a_version(a_schema()), a_version(a_schema(a={}), "v2", storage=False)
    ),
}


def test_a_crd_is_validated_like_on_the_server(plane: ControlPlane) -> None:
    outcomes = answers(plane, Verb.CREATE, *DEFINITIONS.values())

    for (case, body), outcome in zip(DEFINITIONS.items(), outcomes, strict=True):
        assert causes_of(outcome) == find_definition_problems(body), case


def test_a_crd_without_a_storage_version_is_rejected_like_on_the_server(
    plane: ControlPlane,
) -> None:
    request = [
        a_definition(a_version(a_schema(), storage=False)),
        a_definition(a_version(a_schema()), a_version(a_schema(), "v2")),
        a_definition(a_version(a_schema()), a_version(a_schema(), storage=False)),
    ]

    for body, outcome in zip(request, answers(plane, Verb.CREATE, *request), strict=True):
        theirs = [(cause.field, cause.reason) for cause in causes_of(outcome)]
        assert theirs
        assert theirs == [(each.field, each.reason) for each in find_definition_problems(body)]


def with_spec(kind: Kind, *, but: dict[str, Json] | None = None, name: str = "x") -> JsonObject:
    """The smallest good object of a kind, but for some fields of its spec; None drops one."""
    spec: Json = {**SPECS[kind], **(but or {})}
    assert isinstance(spec, dict)
    kept: JsonObject = {field: value for field, value in spec.items() if value is not None}
    return an_object(kind, name, spec=kept)


def a_template(**pod: Json) -> JsonObject:
    spec: JsonObject = {"containers": [{"name": "a", "image": "i"}]}
    return {"metadata": TEMPLATE["metadata"], "spec": {**spec, **pod}}


def with_pod(**pod: Json) -> JsonObject:
    return with_spec(DEPLOYMENT, but={"template": a_template(**pod)})


def with_container(**parts: Json) -> JsonObject:
    return with_pod(containers=[{"name": "a", "image": "i", **parts}])


def with_path(**parts: Json) -> JsonObject:
    backend: JsonObject = {"service": {"name": "a", "port": {"number": 80}}}
    path: JsonObject = {"path": "/", "pathType": "Prefix", "backend": backend, **parts}
    kept: JsonObject = {name: value for name, value in path.items() if value is not None}
    return with_spec(INGRESS, but={"rules": [{"http": {"paths": [kept]}}]})


def labelled(key: str, value: str) -> JsonObject:
    return {"labels": {key: value}}


ONE_SHOT = a_template(restartPolicy="Never")
SPECS: dict[Kind, JsonObject] = {
    CLAIM: {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    CRON_JOB: {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": ONE_SHOT}}},
    DAEMON_SET: {"selector": SELECTOR, "template": a_template()},
    DEPLOYMENT: {"selector": SELECTOR, "template": a_template()},
    INGRESS: {},
    JOB: {"template": ONE_SHOT},
    POD: {"containers": [{"name": "a", "image": "i"}]},
    SERVICE: {"ports": [{"port": 80}]},
    STATEFUL_SET: {"selector": SELECTOR, "template": a_template()},
}
STRAY: JsonObject = {"metadata": {"labels": {"app": "no"}}, "spec": a_template()["spec"]}
SELECTING = (DEPLOYMENT, STATEFUL_SET, DAEMON_SET)
ILL_SELECTED: tuple[JsonObject, ...] = (
    {"selector": None},
    {"selector": {}},
    {"template": STRAY},
    {"template": None},
    {"template": ONE_SHOT},
)
TWO_PORTS: list[Json] = [{"port": 80}, {"port": 81}]
SAME_NAME: list[Json] = [{"port": 80, "name": "a"}, {"port": 81, "name": "a"}]
VOLUME: JsonObject = {"name": "v", "emptyDir": {}}
MOUNT: JsonObject = {"name": "v", "mountPath": "/v"}
ILL_NAMED: tuple[JsonObject, ...] = (
    *(labelled(key, "v") for key in ("a b", "A_/b", "a/b/c", "", "k" * 64, "/a")),
    *(labelled("a", value) for value in ("x y", "v" * 64)),
    {"annotations": {"a b": "x"}},
    {"finalizers": ["abc"]},
)
TYPES = ("basic-auth", "dockercfg", "service-account-token", "ssh-auth", "tls")
RECREATE: JsonObject = {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}

OBJECTS: tuple[JsonObject, ...] = (
    *(with_spec(kind) for kind in SPECS),
    *(an_object(kind) for kind in SPECS),
    *(with_spec(kind, but=but) for kind in SELECTING for but in ILL_SELECTED),
    *(with_spec(kind, but={"replicas": -1}) for kind in (DEPLOYMENT, STATEFUL_SET)),
    with_spec(DEPLOYMENT, but={"strategy": RECREATE}),
    with_spec(DEPLOYMENT, but={"minReadySeconds": -1}),
    with_spec(
        STATEFUL_SET, but={"volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": {}}]}
    ),
    with_pod(containers=[]),
    with_pod(containers=[{"image": "i"}]),
    with_pod(containers=[{"name": "A_b", "image": "i"}]),
    with_pod(containers=[{"name": "a"}]),
    with_pod(containers=[{"name": "a", "image": "i"}, {"name": "a", "image": "i"}]),
    with_pod(initContainers=[{"name": "b"}]),
    with_pod(initContainers=[{"name": "a", "image": "i"}]),
    with_pod(dnsPolicy="X"),
    with_pod(volumes=[{"emptyDir": {}}]),
    with_pod(volumes=[VOLUME, VOLUME]),
    with_pod(volumes=[{"name": "v", "secret": {}}]),
    with_pod(volumes=[{"name": "v", "configMap": {}}]),
    with_pod(volumes=[{"name": "v", "persistentVolumeClaim": {}}]),
    with_container(imagePullPolicy="Sometimes"),
    with_container(ports=[{"name": "http"}]),
    with_container(ports=[{"containerPort": 70000}]),
    with_container(ports=[{"containerPort": 80, "protocol": "X"}]),
    with_container(env=[{"value": "x"}]),
    with_container(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s"}}}]),
    with_container(volumeMounts=[MOUNT]),
    with_container(readinessProbe={}),
    with_pod(
        volumes=[VOLUME], containers=[{"name": "a", "image": "i", "volumeMounts": [{"name": "v"}]}]
    ),
    *(with_spec(JOB, but={"template": a_template(**pod)}) for pod in ({}, {"restartPolicy": "X"})),
    *(with_spec(JOB, but={count: -1}) for count in ("backoffLimit", "parallelism", "completions")),
    with_spec(CRON_JOB, but={"schedule": None}),
    with_spec(CRON_JOB, but={"schedule": "nope"}),
    with_spec(CRON_JOB, but={"jobTemplate": None}),
    with_spec(CRON_JOB, but={"concurrencyPolicy": "X"}),
    with_spec(CRON_JOB, name="a" * 53),
    with_spec(POD, but={"restartPolicy": "X"}),
    with_spec(SERVICE, but={"ports": []}),
    with_spec(SERVICE, but={"ports": [], "clusterIP": "None"}),
    with_spec(SERVICE, but={"ports": [{}]}),
    with_spec(SERVICE, but={"ports": [{"port": 70000}]}),
    with_spec(SERVICE, but={"ports": TWO_PORTS}),
    with_spec(SERVICE, but={"ports": SAME_NAME}),
    with_spec(SERVICE, but={"ports": [{"port": 80, "name": "A_b"}]}),
    with_spec(SERVICE, but={"type": "X"}),
    with_spec(SERVICE, but={"type": "ExternalName"}),
    with_spec(SERVICE, but={"selector": {"a b": "c"}}),
    with_spec(SERVICE, name="a.b"),
    with_spec(CLAIM, but={"accessModes": ["X"]}),
    with_spec(CLAIM, but={"resources": {"requests": {"storage": "0"}}}),
    with_spec(CLAIM, but={"volumeMode": "X"}),
    with_path(),
    with_path(pathType=None),
    with_path(pathType="X"),
    with_path(path="foo"),
    with_path(path=None),
    with_path(backend=None),
    with_path(backend={"service": {"name": "a"}}),
    with_path(backend={"service": {"port": {"number": 80}}}),
    with_path(backend={"service": {"name": "a", "port": {"number": 80, "name": "b"}}}),
    with_spec(INGRESS, but={"rules": [{"http": {"paths": []}}]}),
    *(an_object(CONFIG_MAP, name) for name in ("A", "a_b", "a..b", "a" * 254)),
    *(an_object(CONFIG_MAP, metadata={"name": "x", **each}) for each in ILL_NAMED),
    an_object(CONFIG_MAP, data={"a b": "c"}),
    an_object(CONFIG_MAP, data={"a": "c"}, binaryData={"a": "AAAA"}),
    an_object(SECRET, stringData={"a b": "c"}),
    an_object(SECRET, type="kubernetes.io/tls"),
    an_object(SECRET, type="kubernetes.io/dockerconfigjson"),
    an_object(CONFIG_MAP, data={"a": "x" * (MAX_DATA_BYTES - 3)}, binaryData={"b": "AAAA"}),
    an_object(CONFIG_MAP, data={"a": "x" * (MAX_DATA_BYTES - 2)}, binaryData={"b": "AAAA"}),
    an_object(SECRET, stringData={"a": "x" * MAX_DATA_BYTES}),
    an_object(SECRET, data={"b": "AA=="}, stringData={"a": "x" * MAX_DATA_BYTES}),
    an_object(SECRET, data={"a": "AA=="}, stringData={"a": "x" * MAX_DATA_BYTES}),
    *(an_object(SECRET, type=f"kubernetes.io/{type_}") for type_ in TYPES),
    an_object(SECRET, type="kubernetes.io/basic-auth", stringData={"username": ""}),
    an_object(SECRET, type="kubernetes.io/ssh-auth", stringData={"ssh-privatekey": ""}),
    an_object(SECRET, type="kubernetes.io/tls", stringData={"tls.crt": "", "tls.key": ""}),
    an_object(ROLE_BINDING),
    an_object(Kind("", "v1", "Namespace"), "a.b"),
)


def test_missing_fields_of_a_built_in_object_are_reported_like_on_the_server(
    plane: ControlPlane,
) -> None:
    outcomes = answers(plane, Verb.CREATE, *OBJECTS)

    for body, outcome in zip(OBJECTS, outcomes, strict=True):
        assert causes_of(outcome) == find_requirement_problems(kind_of(body), body), body
