"""What we generate against what Argo CD's own controller does.

`python -m tests.conformance.oracles.sets` asks it again; that needs Go.
"""

from __future__ import annotations

import base64
import gzip
from pathlib import Path

import msgspec
import pytest

from tests.support.appset_runner import Runner
from tidegate.dialect.argo.appset.applications import generate_from_entry, generator_context
from tidegate.dialect.argo.appset.queries import GeneratorError, GeneratorInputs, RegisteredCluster
from tidegate.dialect.declared import ApplicationSet
from tidegate.errors import Location, RenderError
from tidegate.external.worker import Workers
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.render.helm import helm_workers

ANSWERS = Path(__file__).parents[2] / "data" / "sets" / "argo.jsonl.gz"
RECORDED: list[JsonObject] = [
    msgspec.json.decode(line) for line in gzip.decompress(ANSWERS.read_bytes()).splitlines()
]


def clusters_of(request: JsonObject) -> tuple[RegisteredCluster, ...]:
    return tuple(
        RegisteredCluster(
            name=base64.b64decode(get_text(secret, "data", "name")).decode(),
            server=base64.b64decode(get_text(secret, "data", "server")).decode(),
            labels={
                key: str(value) for key, value in get_mapping(secret, "metadata", "labels").items()
            },
            annotations={
                key: str(value)
                for key, value in get_mapping(secret, "metadata", "annotations").items()
            },
        )
        for secret in get_mappings(request, "secrets")
    )


async def ours(request: JsonObject, workers: Workers) -> list[JsonObject] | str:
    """All Applications, those that the controller leaves out later among them."""
    files = {name: str(item) for name, item in get_mapping(request, "files").items()}
    body = get_mapping(request, "set")
    application_set = ApplicationSet(
        namespace="argocd", name="set", location=Location("set.yaml", 1), body=body
    )
    runner, run = (
        Runner(files, workers),
        generator_context(application_set, GeneratorInputs(clusters=clusters_of(request))),
    )
    made: list[JsonObject] = []
    try:
        for entry in get_mappings(body, "spec", "generators"):
            result = await runner.run(generate_from_entry(entry, (), application_set, run))
            made += [application.body for application in result]
    except (RenderError, GeneratorError) as error:
        return str(error)
    return made


def _plain(body: JsonObject) -> JsonObject:
    metadata = {
        key: item
        for key, item in get_mapping(body, "metadata").items()
        if key != "creationTimestamp"
    }
    return {"metadata": metadata, "spec": _without_empty(get_mapping(body, "spec"))}


def _without_empty(value: Json) -> Json:
    """Go leaves out what is empty in a struct."""
    if isinstance(value, dict):
        kept = {key: _without_empty(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in ("", None)}
    return [_without_empty(item) for item in value] if isinstance(value, list) else value


def alike(item: JsonObject) -> bytes:
    return msgspec.json.encode(item, order="deterministic")


@pytest.mark.parametrize("number", range(0, len(RECORDED), 100))
async def test_we_generate_what_argo_cd_does(number: int) -> None:
    async with helm_workers(count=1) as workers:
        for at, recorded in enumerate(RECORDED[number : number + 100], number):
            mapping, answer = get_mapping(recorded, "asked"), get_mapping(recorded, "answer")
            made, error = await ours(mapping, workers), get_text(answer, "error")
            if error.startswith("panic"):  # it merges values of two types, and dies
                continue
            if isinstance(made, str) or error:
                assert isinstance(made, str), (at, error, "and we generate")
                assert error, (at, made, "and Argo CD generates")
                continue
            expected = map(_plain, get_mappings(answer, "applications"))
            assert sorted(map(alike, map(_plain, made))) == sorted(map(alike, expected)), at
