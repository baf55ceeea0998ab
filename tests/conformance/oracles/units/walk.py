"""Go through a repository from its entries, as the controllers do, by what the oracles answer."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping

from tests.conformance.oracles.units.queries import Answer, Oracle
from tests.support.expected_units import REPOS, URL, Expected, expected, identity, key_file
from tidegate.documents import read_documents
from tidegate.model.k8s.objects import JsonObject

Cluster = dict[str, JsonObject]

KEY: JsonObject = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "sops-age", "namespace": "flux-system"},
    "data": {"age.agekey": base64.b64encode(key_file().encode()).decode()},
}
PLAIN: JsonObject = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Application",
    "metadata": {"name": "plain", "namespace": "argocd"},
    "spec": {
        "source": {"repoURL": URL, "path": ".", "directory": {"recurse": True}},
        "destination": {"server": "https://kubernetes.default.svc"},
    },
}
"""A directory that no Application deploys, as Argo CD would read it."""


def walk(shape: str, oracles: Mapping[str, Oracle]) -> Iterator[tuple[Expected, Answer]]:
    """Each unit after its parent, with the objects that are in the cluster by then."""
    clusters: dict[str, Cluster] = {}
    rendered: dict[tuple[str, str], list[JsonObject]] = {}
    for unit in expected(shape).units:
        cluster = clusters.setdefault(unit.of, {identity(KEY): KEY})
        if unit.parent is None:
            # A user applies the file by hand, with all its objects.
            rendered[unit.of, ""] = _in_file(shape, (unit.place or "").split(":")[0])
            cluster |= {identity(item): item for item in rendered[unit.of, ""]}
        body = _unit_resource(unit, rendered[unit.of, unit.parent or ""])
        answer = oracles[str(body["kind"])].ask(shape, body, list(cluster.values()))
        if body["kind"] == "Application":
            answer = Answer(_applied(answer.objects, unit.namespace), answer.error)
        rendered[unit.of, unit.id] = [
            each
            for item in answer.objects
            for each in (_as_stored(item), *_generated(shape, item, oracles))
        ]
        cluster |= {identity(item): item for item in rendered[unit.of, unit.id]}
        yield unit, answer


def _generated(shape: str, body: JsonObject, oracles: Mapping[str, Oracle]) -> list[JsonObject]:
    """What a set makes of the repository."""
    if body.get("kind") != "ApplicationSet":
        return []
    return oracles["ApplicationSet"].generate(shape, body)


def _in_file(shape: str, name: str) -> list[JsonObject]:
    if not name:
        return []
    return [document.body for document in read_documents((REPOS / shape / name).read_bytes(), name)]


def _unit_resource(unit: Expected, among: list[JsonObject]) -> JsonObject:
    if unit.id.count("/") < 2:
        return PLAIN
    matches = [item for item in among if identity(item) == unit.id]
    if not matches:
        raise LookupError(f"{unit.id} is not brought by {unit.parent or unit.place}")
    return matches[-1]


def _applied(objects: list[JsonObject], namespace: str | None) -> list[JsonObject]:
    """The objects that Argo CD's controller keeps: of duplicates, the last one."""
    last: dict[tuple[str, str], JsonObject] = {}
    for item in objects:
        group = str(item["apiVersion"]).rpartition("/")[0]
        last[group, identity(item).replace("/None/", f"/{namespace}/")] = item
    return list(last.values())


def _as_stored(body: JsonObject) -> JsonObject:
    """As the API server keeps a Secret."""
    words = body.get("stringData")
    if body.get("kind") != "Secret" or not isinstance(words, dict):
        return body
    data = body.get("data")
    encoded = {key: base64.b64encode(str(value).encode()).decode() for key, value in words.items()}
    rest = {key: value for key, value in body.items() if key != "stringData"}
    return {**rest, "data": {**(data if isinstance(data, dict) else {}), **encoded}}
