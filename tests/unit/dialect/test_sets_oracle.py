"""What we generate against what Argo CD's own controller does.

`python -m tests.conformance.oracles.sets` asks it again; that needs Go.
"""

from __future__ import annotations

import base64
import gzip
from pathlib import Path

import msgspec
import pytest

from tests.support.running_sets import Runner
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


def clusters_of(asked: JsonObject) -> tuple[RegisteredCluster, ...]:
    return tuple(
        RegisteredCluster(
            name=base64.b64decode(get_text(one, "data", "name")).decode(),
            server=base64.b64decode(get_text(one, "data", "server")).decode(),
            labels={
                key: str(value) for key, value in get_mapping(one, "metadata", "labels").items()
            },
            annotations={
                key: str(value)
                for key, value in get_mapping(one, "metadata", "annotations").items()
            },
        )
        for one in get_mappings(asked, "secrets")
    )


async def ours(asked: JsonObject, workers: Workers) -> list[JsonObject] | str:
    """All Applications, those that the controller leaves out later among them."""
    files = {name: str(one) for name, one in get_mapping(asked, "files").items()}
    body = get_mapping(asked, "set")
    one = ApplicationSet(
        namespace="argocd", name="set", location=Location("set.yaml", 1), body=body
    )
    runner, run = (
        Runner(files, workers),
        generator_context(one, GeneratorInputs(clusters=clusters_of(asked))),
    )
    made: list[JsonObject] = []
    try:
        for entry in get_mappings(body, "spec", "generators"):
            found = await runner.run(generate_from_entry(entry, (), one, run))
            made += [application.body for application in found]
    except (RenderError, GeneratorError) as error:
        return str(error)
    return made


def _plain(body: JsonObject) -> JsonObject:
    metadata = {
        key: one for key, one in get_mapping(body, "metadata").items() if key != "creationTimestamp"
    }
    return {"metadata": metadata, "spec": _without_empty(get_mapping(body, "spec"))}


def _without_empty(value: Json) -> Json:
    """Go leaves out what is empty in a struct."""
    if isinstance(value, dict):
        kept = {key: _without_empty(one) for key, one in value.items()}
        return {key: one for key, one in kept.items() if one not in ("", None)}
    return [_without_empty(one) for one in value] if isinstance(value, list) else value


def alike(one: JsonObject) -> bytes:
    return msgspec.json.encode(one, order="deterministic")


@pytest.mark.parametrize("number", range(0, len(RECORDED), 100))
async def test_we_generate_what_argo_cd_does(number: int) -> None:
    async with helm_workers(count=1) as workers:
        for at, recorded in enumerate(RECORDED[number : number + 100], number):
            asked, answer = get_mapping(recorded, "asked"), get_mapping(recorded, "answer")
            made, error = await ours(asked, workers), get_text(answer, "error")
            if error.startswith("panic"):  # it merges values of two types, and dies
                continue
            if isinstance(made, str) or error:
                assert isinstance(made, str), (at, error, "and we generate")
                assert error, (at, made, "and Argo CD generates")
                continue
            wanted = map(_plain, get_mappings(answer, "applications"))
            assert sorted(map(alike, map(_plain, made))) == sorted(map(alike, wanted)), at
