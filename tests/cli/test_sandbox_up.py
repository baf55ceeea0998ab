"""A simulated cluster that stays, seen by kubectl, and how it begins and ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.recorded_wording import RecordedWording
from tidegate.clusters.sandboxes import (
    KUBECONFIG,
    SimulationConfig,
    build_sandbox,
    sandbox_directory,
)
from tidegate.model.times import Ms, parse_timestamp
from tidegate.simulation.server import serve_world

KUBECTL = Path(sys.executable).with_name("kubectl")
START = Ms(parse_timestamp("2026-11-17T12:00:00Z"))
GATE = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gates.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Gate, plural: gates, singular: gate, shortNames: [gt], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
    additionalPrinterColumns:
    - {name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status'}
    - {name: Height, type: integer, jsonPath: .spec.height}
    - name: Owner
      type: string
      jsonPath: .metadata.annotations.example\\.org/owner
      priority: 1
    - {name: Since, type: date, jsonPath: .spec.since}
"""
NORTH = """apiVersion: example.org/v1
kind: Gate
metadata: {name: north, annotations: {example.org/owner: ann}}
spec: {height: 3, since: "2026-11-17T11:00:00Z"}
status: {conditions: [{type: Other, status: "False"}, {type: Ready, status: "True"}]}
"""
SETTINGS = """apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: blue}
"""


@dataclass(frozen=True, slots=True)
class Console:
    """A user who runs kubectl on a simulated cluster."""

    directory: Path

    async def kubectl(self, *arguments: str, text: str = "", code: int = 0) -> str:
        """What it says; it must leave with this code."""
        pipe = asyncio.subprocess.PIPE
        started = await asyncio.create_subprocess_exec(
            *(
                KUBECTL,
                "--kubeconfig",
                self.directory / KUBECONFIG,
                "--cache-dir",
                self.directory / "cache",
            ),
            *arguments,
            stdin=pipe,
            stdout=pipe,
            stderr=asyncio.subprocess.STDOUT,
        )
        raw, _ = await started.communicate(text.encode())
        assert started.returncode == code, raw.decode()
        return raw.decode()

    async def apply(self, text: str) -> str:
        return await self.kubectl("apply", "--server-side", "-f", "-", text=text)


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[Console]:
    world = build_sandbox(SimulationConfig(start=START))
    async with serve_world(world, tmp_path, pace=20):
        yield Console(tmp_path)


@pytest.mark.parametrize("opening", ['{"a":', "["])
async def test_deeply_nested_json_is_a_bad_request_and_the_server_goes_on(
    console: Console, opening: str
) -> None:
    closing = {"[": "]"}.get(opening, "1}")
    nested = opening * 100_000 + closing * (100_000 if opening == "[" else 1)
    body = f'{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"a"}},"data":{nested}}}'
    words = ("create", "--raw", "/api/v1/namespaces/default/configmaps", "-f", "-")

    answer = await console.kubectl(*words, text=body, code=1)
    applied = await console.apply(SETTINGS)

    assert "BadRequest" in answer
    assert "serverside-applied" in applied


async def test_custom_kinds_have_the_names_and_columns_that_they_ask_for(console: Console) -> None:
    await console.apply(GATE)
    await console.kubectl("wait", "--for=condition=Established", "crd/gates.example.org")
    await console.apply(NORTH)

    rows = (await console.kubectl("get", "gt")).splitlines()
    wide = (await console.kubectl("get", "all", "-o", "wide")).splitlines()

    assert [row.split()[:4] for row in rows] == [
        ["NAME", "READY", "HEIGHT", "SINCE"],
        ["north", "True", "3", "60m"],
    ]
    assert [row.split() for row in wide][1][:4] == ["gate.example.org/north", "True", "3", "ann"]


async def test_errors_equal_those_of_a_real_server(console: Console) -> None:
    misspelt = SETTINGS.replace("\ndata:", "\ndat:")

    unknown = await console.kubectl("apply", "--server-side", "-f", "-", text=misspelt, code=1)
    missing = await console.kubectl("get", "configmap", "nobody", code=1)
    nowhere = await console.kubectl(
        *("apply", "--server-side", "-n", "nowhere", "-f", "-"), text=SETTINGS, code=1
    )

    assert "field not declared in schema" in unknown
    assert missing == 'Error from server (NotFound): configmaps "nobody" not found\n'
    assert 'namespaces "nowhere" not found' in nowhere


async def test_a_field_of_another_manager_is_a_conflict_unless_it_is_forced(
    console: Console,
) -> None:
    apply = ("apply", "--server-side", "-f", "-")
    await console.kubectl(*apply, "--field-manager=ann", text=SETTINGS)
    red = SETTINGS.replace("blue", "red")

    refused = await console.kubectl(*apply, "--field-manager=ben", text=red, code=1)
    await console.kubectl(*apply, "--field-manager=ben", "--force-conflicts", text=red)
    managers = "jsonpath={.metadata.managedFields[*].manager} {.data.color}"
    kept = await console.kubectl(
        "get", "configmap", "settings", "--show-managed-fields", "-o", managers
    )

    assert 'conflict with "ann": .data.color' in refused
    assert kept.split()[-2:] == ["ben", "red"]


async def test_unsupported_requests_are_rejected_with_a_message(
    wording: RecordedWording, console: Console
) -> None:
    token = await console.kubectl("create", "token", "default", code=1)
    binary = await console.kubectl("create", "job", "once", "--image=busybox", code=1)

    assert "could not find the requested resource" in token
    wording(binary)


WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: patched}
spec:
  replicas: 1
  selector: {matchLabels: {app: patched}}
  template:
    metadata: {labels: {app: patched}}
    spec:
      containers:
      - {name: web, image: "web:1", ports: [{containerPort: 80}]}
      - {name: beside, image: "beside:1"}
"""


async def test_client_side_apply_changes_what_is_written_and_leaves_the_rest(
    console: Console,
) -> None:
    await console.kubectl("apply", "-f", "-", text=WEB)
    await console.kubectl("set", "image", "deploy/patched", "beside=beside:2")
    newer = (
        WEB.replace("web:1", "web:2").replace("  replicas: 1\n", "").replace("beside:1", "beside:3")
    )
    await console.kubectl("apply", "-f", "-", text=newer)
    without = newer.replace('      - {name: beside, image: "beside:3"}\n', "")

    images = "jsonpath={.spec.template.spec.containers[*].image}"
    both = await console.kubectl("get", "deploy", "patched", "-o", images)
    await console.kubectl("apply", "-f", "-", text=without)
    item = await console.kubectl("get", "deploy", "patched", "-o", images)

    assert (both, item) == ("web:2 beside:3", "web:2")


async def test_a_workload_can_be_scaled_patched_and_restarted(console: Console) -> None:
    await console.kubectl("apply", "-f", "-", text=WEB)

    scaled = await console.kubectl("scale", "deploy/patched", "--replicas=3")
    count = await console.kubectl("get", "deploy", "patched", "-o", "jsonpath={.spec.replicas}")
    wrong = await console.kubectl(
        "scale", "deploy/patched", "--current-replicas=1", "--replicas=2", code=1
    )
    await console.kubectl("patch", "deploy", "patched", "-p", '{"spec": {"replicas": 2}}')
    await console.kubectl("rollout", "restart", "deploy/patched")
    await console.kubectl("rollout", "status", "deploy/patched")

    assert scaled == "deployment.apps/patched scaled\n"
    assert count == "3"
    assert "Expected replicas to be 1, was 3" in wrong


async def test_logs_are_followed_and_nothing_can_be_run_in_a_container(
    wording: RecordedWording, console: Console
) -> None:
    job = await console.kubectl(
        *("create", "job", "once", "--image=busybox", "--dry-run=client", "-o", "yaml")
    )
    await console.kubectl("apply", "-f", "-", text=job)
    await console.kubectl("wait", "pod", "-l", "job-name=once", "--for=create", "--timeout=60s")
    await console.kubectl("logs", "-f", "job/once", "--pod-running-timeout=60s")
    phase = await console.kubectl(
        "get", "pod", "-l", "job-name=once", "-o", "jsonpath={.items[0].status.phase}"
    )
    await console.kubectl("apply", "-f", "-", text=WEB)
    await console.kubectl("rollout", "status", "deploy/patched")

    refused = await console.kubectl("exec", "deploy/patched", "--", "ls", code=1)
    node = await console.kubectl("get", "nodes", "--no-headers")

    assert phase == "Succeeded"
    wording(refused.splitlines()[-1])
    assert node.split()[:2] == ["node-1", "Ready"]


async def test_changes_are_shown_as_they_happen(console: Console) -> None:
    await console.apply(SETTINGS)
    pipe = asyncio.subprocess.PIPE
    watching = await asyncio.create_subprocess_exec(
        *(KUBECTL, "--kubeconfig", console.directory / KUBECONFIG, "get", "configmap", "settings"),
        *("--watch", "-o", "jsonpath={.data.color}{'\\n'}"),
        stdout=pipe,
    )
    assert watching.stdout is not None

    first = await watching.stdout.readline()
    await console.apply(SETTINGS.replace("blue", "red"))
    second = await watching.stdout.readline()
    watching.terminate()
    await watching.communicate()

    assert (first, second) == (b"blue\n", b"red\n")


async def test_a_request_without_a_token_gets_no_data(console: Console) -> None:
    anonymous = await console.kubectl("--token=wrong", "get", "secrets", code=1)

    assert "Unauthorized" in anonymous or "must be logged in" in anonymous


@dataclass(frozen=True, slots=True)
class Shell:
    """A user with a home directory, who starts and stops simulated clusters."""

    environ: dict[str, str]

    @property
    def directory(self) -> Path:
        return sandbox_directory(self.environ)

    @property
    def process(self) -> int:
        return int((self.directory / "pid").read_text())

    async def tidegate(self, *arguments: str) -> tuple[int, str]:
        pipe = asyncio.subprocess.PIPE
        started = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tidegate", "sandbox", *arguments),
            env=self.environ,
            stdout=pipe,
            stderr=asyncio.subprocess.STDOUT,
        )
        text, _ = await started.communicate()
        assert started.returncode is not None
        return started.returncode, text.decode()


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Shell]:
    shell = Shell(os.environ | {"HOME": str(tmp_path), "XDG_STATE_HOME": ""})
    yield shell
    await shell.tidegate("down")


async def test_only_one_simulated_cluster_runs_until_it_is_stopped(shell: Shell) -> None:
    code, text = await shell.tidegate("up")
    again = await shell.tidegate("up")
    kubeconfig = shell.directory / KUBECONFIG
    mode = stat.S_IMODE(kubeconfig.stat().st_mode)
    ended = await shell.tidegate("down")
    left = sorted(path.name for path in shell.directory.iterdir())
    nothing = await shell.tidegate("down")

    assert (code, mode) == (0, 0o600)
    assert f"export KUBECONFIG={kubeconfig}" in text
    assert "https://127.0.0.1:" in text
    assert again[0] == 5
    assert "error[cluster.sandbox]" in again[1]
    assert ended[0] == 0
    assert left == ["log"]
    assert nothing[0] == 5
    assert "error[cluster.sandbox]" in nothing[1]


async def test_programs_read_its_address_and_its_errors_as_json(shell: Shell) -> None:
    up, again, down, nothing = [
        await shell.tidegate(word, "-o", "json") for word in ("up", "up", "down", "down")
    ]
    messages = [json.loads(text) for _, text in (up, again, down, nothing)]

    assert [code for code, _ in (up, again, down, nothing)] == [0, 5, 0, 5]
    assert [item.get("state", item.get("code")) for item in messages] == [
        *("up", "cluster.sandbox", "stopped", "cluster.sandbox")
    ]
    assert messages[0]["kubeconfig"] == str(shell.directory / KUBECONFIG)
    assert messages[0]["address"].startswith("https://127.0.0.1:")


@pytest.mark.parametrize("sign", [signal.SIGHUP, signal.SIGINT])
async def test_a_signal_ends_it_and_nothing_is_left(shell: Shell, sign: int) -> None:
    started = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tidegate", "sandbox", "up", "--foreground"),
        env=shell.environ,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert started.stdout is not None
    await started.stdout.read()  # to the end: its address is printed

    started.send_signal(sign)
    _, complaints = await started.communicate()

    assert (started.returncode, complaints) == (0, b"")
    assert sorted(shell.directory.iterdir()) == []


async def test_a_sandbox_that_was_killed_is_not_reported_as_running(shell: Shell) -> None:
    await shell.tidegate("up")
    os.kill(shell.process, signal.SIGKILL)

    code, text = await shell.tidegate("up")

    assert code == 0, text


async def test_a_failed_start_is_reported_with_its_reason(shell: Shell, tmp_path: Path) -> None:
    broken = tmp_path / "given.yaml"
    broken.write_text("apiVersion: v1\nkind: [")

    code, text = await shell.tidegate("up", "--preload", str(broken))

    assert code == 3
    assert "error[documents.syntax]" in text
    assert f"at {broken}:" in text


async def test_preloaded_objects_exist_from_the_start(shell: Shell, tmp_path: Path) -> None:
    given = tmp_path / "given.yaml"
    given.write_text(SETTINGS)

    await shell.tidegate("up", "--preload", str(given), "--seed", "7", "--speed", "10")

    console = Console(shell.directory)
    assert await console.kubectl("get", "configmap", "settings", "-o", "name") == (
        "configmap/settings\n"
    )
