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
from tests.support.in_process_command import CommandOutput, run_in_process
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


class SyncRunner:
    """Runs `sync` in a namespace, which the plan may create."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.namespace = f"mistakes-{next(_numbers)}"
        self._config = plane.kubeconfig("tidegate")
        self._folder = folder

    def make_namespace(self) -> None:
        asyncio.run(self._make(make_object("v1 Namespace", self.namespace, namespace="")))

    def sync(self, *waves: tuple[JsonObject, ...], **words: str) -> CommandOutput:
        for wave, bodies in enumerate(waves):
            placed = (in_wave(body, wave, self.namespace) for body in bodies)
            (self._folder / f"{wave}.yaml").write_text("---\n".join(map(to_yaml, placed)))
        environment = {"PATH": os.environ["PATH"], "HOME": str(self._folder)}
        more = [f"--{name}={word}" for name, word in words.items()]
        target_flags = ("--kubeconfig", str(self._config), "--namespace", self.namespace)
        command = (
            "sync",
            ".",
            "--yes",
            "--name",
            self.namespace,
            *target_flags,
            "-o",
            "json",
            *more,
        )
        return run_in_process(self._folder, environment, command)

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
def runner(plane: ControlPlane, tmp_path: Path) -> SyncRunner:
    return SyncRunner(plane, tmp_path)


def list_messages(text: CommandOutput, what: str) -> list[str]:
    events: list[dict[str, Json]] = [json.loads(line) for line in text.stdout.splitlines()]
    return [str(event["name"]) for event in events if event.get("event") == what]


FIRST = make_config_map("first")


def test_there_are_enough_mistakes() -> None:
    assert len(MISTAKES) >= 68


def test_a_mistake_in_the_last_wave_is_found_before_the_first_write(runner: SyncRunner) -> None:
    runner.make_namespace()
    mistakes = named_mistakes(runner.namespace)

    result = runner.sync((FIRST,), (*mistakes.values(),))

    assert result.code == INVALID
    assert {*mistakes} - {*list_messages(result, "object.refused")} == set()
    assert runner.written() == []


def test_a_mistake_is_found_if_the_plan_creates_its_namespace(runner: SyncRunner) -> None:
    mistakes = named_mistakes(runner.namespace)
    space = make_object("v1 Namespace", runner.namespace, namespace="")

    result = runner.sync((space,), (FIRST,), (*mistakes.values(),))

    assert result.code == INVALID
    assert {*mistakes} - {*list_messages(result, "object.refused")} == set()
    assert runner.written() == []
    assert list_messages(result, "object.written") == []


@pytest.mark.parametrize("mistake", ["limits below requests", "CIDR /99", "no verbs"])
def test_one_mistake_among_valid_objects_is_found(mistake: str, runner: SyncRunner) -> None:
    runner.make_namespace()
    place = [*MISTAKES].index(mistake)
    bad = [*named_mistakes(runner.namespace).values()][place]

    result = runner.sync((FIRST,), (make_config_map("second"),), (bad,))

    assert (result.code, len(list_messages(result, "object.refused"))) == (INVALID, 1)
    assert runner.written() == []


def test_local_preflight_reports_only_violations_of_local_rules(runner: SyncRunner) -> None:
    runner.make_namespace()
    bad = next(iter(named_mistakes(runner.namespace).values()))

    result = runner.sync((FIRST,), (bad,), preflight="local")

    assert result.code != 0
    assert runner.written() == ["first"]
