"""`tidegate journal`: the journal of a unit in a cluster."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.secret_server import SecretServer, secret_server
from tests.support.sessions import a_session
from tests.support.tidegate_runs import tidegate
from tests.support.unit_trees import make_unit_tree
from tidegate.clusters.journal import read_journal
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.engine.driver import drive
from tidegate.engine.records.storage import TIDEGATE_NAMESPACE
from tidegate.model.times import SECOND, Ms
from tidegate.plan.build.build import plan_unit
from tidegate.planning.preparation import prepare_plan
from tidegate.rollout.run import RolloutOptions, build_driver
from tidegate.workspace.request import unit_for_path

FIRST = Path(__file__).parents[2] / "examples" / "first"
UNIT = unit_for_path(str(FIRST), namespace="default")


def run(server: SecretServer, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    config = server.write_kubeconfig(folder / "kubeconfig")
    command = ("status", str(FIRST), "--journal", "--kubeconfig", str(config), *more)
    return tidegate(*command)


async def secrets_of_rollout(within: Ms | None = None) -> dict[str, bytes]:
    """The Secrets of a rollout that was stopped after a time, by name."""
    world = build_sandbox(SimulationConfig())
    session = a_session(world)
    plan = (await prepare_plan([await make_unit_tree(UNIT, session)], session)).plan
    driver = build_driver(plan, session, RolloutOptions(holder="me"), lambda _: None)
    await drive(driver, until=None if within is None else Ms(world.now() + within))
    secrets = (await read_journal(plan_unit(UNIT), session.world)).secrets
    live_objects = await session.reader().get_many(secrets)
    return {ref.name: live.body for ref, live in live_objects.items()}


@pytest.fixture(scope="module")
def finished() -> dict[str, bytes]:
    return asyncio.run(secrets_of_rollout())


@pytest.fixture(scope="module")
def stopped() -> dict[str, bytes]:
    return asyncio.run(secrets_of_rollout(Ms(90 * SECOND)))


def test_a_finished_unit_is_shown_with_all_its_gates(
    wording: RecordedWording, finished: dict[str, bytes], tmp_path: Path
) -> None:
    with secret_server(TIDEGATE_NAMESPACE, finished) as server:
        ran = run(server, tmp_path)
        document = json.loads(run(server, tmp_path, "-o", "json").stdout)

    head, _, objects = ran.stdout.partition("\n\n")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert (document["unit"], document["found"], document["complete"]) == (
        "default/first",
        True,
        True,
    )
    assert [item["opened"] for item in document["objects"]] == [True] * 10
    unit, plan, begun, done = head.splitlines()
    columns, *rows = objects.splitlines()
    assert len(rows) == 10
    assert len({row.split()[-1] for row in rows}) == 1
    wording([unit, plan.split()[0], begun.split()[0], done, columns, rows[0]])


def test_a_stopped_unit_is_shown_with_the_gates_that_opened(
    stopped: dict[str, bytes], tmp_path: Path
) -> None:
    with secret_server(TIDEGATE_NAMESPACE, stopped) as server:
        ran = run(server, tmp_path, "-o", "json")

    document = json.loads(ran.stdout)
    opened = {item["name"]: item["opened"] for item in document["objects"]}
    assert (document["unit"], document["found"], document["complete"]) == (
        "default/first",
        True,
        False,
    )
    assert opened["db"]
    assert not opened["migrate"]
    assert not opened["shop"]


def test_only_secrets_are_read(finished: dict[str, bytes], tmp_path: Path) -> None:
    with secret_server(TIDEGATE_NAMESPACE, finished) as server:
        run(server, tmp_path)

    objects = [path for path in server.requests if path not in {"/version", "/api", "/apis"}]
    assert {path.rpartition("/")[2] for path in objects} == set(finished)
    assert all(
        path.startswith(f"/api/v1/namespaces/{TIDEGATE_NAMESPACE}/secrets/") for path in objects
    )


def test_an_empty_journal_is_reported(wording: RecordedWording, tmp_path: Path) -> None:
    with secret_server(TIDEGATE_NAMESPACE, {}) as server:
        ran = run(server, tmp_path)
        document = json.loads(run(server, tmp_path, "-o", "json").stdout)

    assert ran.returncode == 0
    wording(ran.stdout)
    assert (document["found"], document["objects"]) == (False, [])


def test_a_unit_is_found_by_its_name_and_namespace(
    finished: dict[str, bytes], tmp_path: Path
) -> None:
    with secret_server(TIDEGATE_NAMESPACE, finished) as server:
        options = ("--name", "second", "--namespace", "web", "-o", "json")
        document = json.loads(run(server, tmp_path, *options).stdout)

    assert (document["unit"], document["found"]) == ("web/second", False)
