"""One bad object in the last wave, and nothing is written: ordinary mistakes on a real server."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from pathlib import Path

import pytest

from plane import ControlPlane
from tests.support.builders import make_config_map, make_object
from tests.support.cluster_client import ClusterClient, require_items
from tests.support.in_process_command import Said, typed
from tests.support.object_mistakes import MISTAKES, named_mistakes
from tests.support.worlds import real_world
from tidegate.documents.dump import to_yaml
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.requests import List, Selection

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]

CONFIG_MAP = Kind("", "v1", "ConfigMap")
WAVE = "argocd.argoproj.io/sync-wave"
INVALID = 3
_numbers = itertools.count(1)


def in_wave(body: JsonObject, wave: int, namespace: str) -> JsonObject:
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    known = metadata.get("annotations", {})
    assert isinstance(known, dict)
    moved: JsonObject = {"namespace": namespace} if "namespace" in metadata else {}
    noted: JsonObject = {"annotations": {**known, WAVE: str(wave)}}
    return {**body, "metadata": {**metadata, **moved, **noted}}


class Home:
    """Somebody who rolls out to a namespace, which may come with the plan."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.namespace = f"mistakes-{next(_numbers)}"
        self._config = plane.kubeconfig("tidegate")
        self._folder = folder

    def make_namespace(self) -> None:
        asyncio.run(self._make(make_object("v1 Namespace", self.namespace, namespace="")))

    def sync(self, *waves: tuple[JsonObject, ...], **words: str) -> Said:
        for wave, bodies in enumerate(waves):
            placed = (in_wave(body, wave, self.namespace) for body in bodies)
            (self._folder / f"{wave}.yaml").write_text("---\n".join(map(to_yaml, placed)))
        environment = {"PATH": os.environ["PATH"], "HOME": str(self._folder)}
        more = [f"--{name}={word}" for name, word in words.items()]
        where = ("--kubeconfig", str(self._config), "--namespace", self.namespace)
        command = ("sync", ".", "--yes", "--name", self.namespace, *where, "-o", "json", *more)
        return typed(self._folder, environment, command)

    def written(self) -> list[str]:
        return asyncio.run(self._written())

    async def _make(self, body: JsonObject) -> None:
        async with real_world(kubeconfig=self._config) as world:
            await ClusterClient(Dispatcher(world)).create(body)

    async def _written(self) -> list[str]:
        async with real_world(kubeconfig=self._config) as world:
            selection = Selection(CONFIG_MAP, self.namespace)
            (page,) = await ClusterClient(Dispatcher(world)).ask(List(selection))
        return [
            live.ref.name for live in require_items(page) if live.ref.name != "kube-root-ca.crt"
        ]


@pytest.fixture
def home(plane: ControlPlane, tmp_path: Path) -> Home:
    return Home(plane, tmp_path)


def list_messages(text: Said, what: str) -> list[str]:
    events: list[dict[str, Json]] = [json.loads(line) for line in text.stdout.splitlines()]
    return [str(event["name"]) for event in events if event.get("event") == what]


FIRST = make_config_map("first")


def test_there_are_enough_of_them() -> None:
    assert len(MISTAKES) >= 68


def test_each_mistake_of_a_last_wave_is_found_before_the_first_write(home: Home) -> None:
    home.make_namespace()
    mistakes = named_mistakes(home.namespace)

    result = home.sync((FIRST,), (*mistakes.values(),))

    assert result.code == INVALID
    assert {*mistakes} - {*list_messages(result, "object.refused")} == set()
    assert home.written() == []


def test_each_is_found_though_its_namespace_comes_with_the_plan(home: Home) -> None:
    mistakes = named_mistakes(home.namespace)
    space = make_object("v1 Namespace", home.namespace, namespace="")

    result = home.sync((space,), (FIRST,), (*mistakes.values(),))

    assert result.code == INVALID
    assert {*mistakes} - {*list_messages(result, "object.refused")} == set()
    assert home.written() == []
    assert list_messages(result, "object.written") == []


@pytest.mark.parametrize("mistake", ["limits below requests", "CIDR /99", "no verbs"])
def test_one_mistake_among_good_objects_is_enough(mistake: str, home: Home) -> None:
    home.make_namespace()
    place = [*MISTAKES].index(mistake)
    bad = [*named_mistakes(home.namespace).values()][place]

    result = home.sync((FIRST,), (make_config_map("second"),), (bad,))

    assert (result.code, len(list_messages(result, "object.refused"))) == (INVALID, 1)
    assert home.written() == []


def test_who_wants_local_rules_alone_gets_what_they_find(home: Home) -> None:
    home.make_namespace()
    bad = next(iter(named_mistakes(home.namespace).values()))

    result = home.sync((FIRST,), (bad,), preflight="local")

    assert result.code != 0
    assert home.written() == ["first"]
