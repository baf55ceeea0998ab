"""Go through a repository from its entries, as the controllers do, by what the oracles answer."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping

from tests.oracles.units.asking import Answer, Oracle
from tests.units.expected import REPOS, Body, Expected, expected, identity, key_file
from tidegate.documents import read

KEY: Body = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "sops-age", "namespace": "flux-system"},
    "data": {"age.agekey": base64.b64encode(key_file().encode()).decode()},
}


def walk(shape: str, oracles: Mapping[str, Oracle]) -> Iterator[tuple[Expected, Answer]]:
    """Each unit after the one that brings it, with what is in the cluster by then."""
    cluster: dict[str, list[Body]] = {}
    brought: dict[tuple[str, str], list[Body]] = {}
    for unit in expected(shape).units:
        kind = unit.id.split("/")[0]
        if kind not in oracles:
            continue
        seen = cluster.setdefault(unit.of, [KEY])
        body = _own_object(shape, unit, brought)
        answer = oracles[kind].ask(shape, body, seen)
        objects = [_as_stored(one) for one in answer.objects]
        brought[unit.of, unit.id] = objects
        seen.extend(objects)
        yield unit, answer


def _own_object(shape: str, unit: Expected, brought: Mapping[tuple[str, str], list[Body]]) -> Body:
    """As its parent renders it, or as it stands in its file."""
    if unit.parent:
        found = [one for one in brought[unit.of, unit.parent] if identity(one) == unit.id]
    else:
        name = (unit.place or "").split(":")[0]
        documents = read((REPOS / shape / name).read_bytes(), name)
        found = [one.body for one in documents if identity(one.body) == unit.id]
    if not found:
        raise LookupError(f"{shape}: {unit.id} is not brought by {unit.parent or unit.place}")
    return found[-1]


def _as_stored(body: Body) -> Body:
    """As the API server keeps a Secret."""
    words = body.get("stringData")
    if body.get("kind") != "Secret" or not isinstance(words, dict):
        return body
    data = body.get("data")
    encoded = {key: base64.b64encode(str(value).encode()).decode() for key, value in words.items()}
    rest = {key: value for key, value in body.items() if key != "stringData"}
    return {**rest, "data": {**(data if isinstance(data, dict) else {}), **encoded}}
