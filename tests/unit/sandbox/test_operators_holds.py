"""Holds: a sealed Vault is not ready before it is unsealed."""

from __future__ import annotations

import pytest

from tests.support.cluster_client import require_live
from tests.support.objects import CONFIG_MAP, JOB, POD, a_container, a_job, an_object
from tests.support.operator_stage import OperatorStage
from tidegate.errors import TidegateError
from tidegate.knowledge.reader import load_builtin_knowledge, parse_knowledge
from tidegate.model.k8s.objects import Json, JsonObject, Ref
from tidegate.sandbox.operators.availability import unready_reason
from tidegate.sandbox.server.store import StoredObject

SEALED = next(hold.reason for hold in load_builtin_knowledge().holds if hold.name == "sealed")
SERVER: dict[str, Json] = {"app.kubernetes.io/name": "vault", "component": "server"}


def a_pod(labels: dict[str, Json], **container: Json) -> StoredObject:
    volume: JsonObject = {"name": "config", "configMap": {"name": "vault-config"}}
    spec: JsonObject = {"containers": [{**a_container("vault"), **container}], "volumes": [volume]}
    body: JsonObject = {**an_object(POD, "vault-0", spec=spec), "metadata": {"labels": labels}}
    return StoredObject(Ref(POD, "shop", "vault-0"), body, (), 1)


async def hold_reason(stage: OperatorStage, pod: StoredObject) -> str:
    return unready_reason(stage.sandbox.clusters[""].reader, pod, load_builtin_knowledge().holds)


async def test_vault_is_not_ready_until_a_job_has_unsealed_it() -> None:
    stage = await OperatorStage().start()
    pod = a_pod(SERVER)
    require_live(await stage.client.create(a_job("vault-bootstrap")))

    before = await hold_reason(stage, pod)
    done: JsonObject = {"status": {"succeeded": 1}}
    await stage.client.patch(Ref(JOB, "shop", "vault-bootstrap"), done, subresource="status")

    assert (before, await hold_reason(stage, pod)) == (SEALED, "")


async def test_another_job_unseals_nothing() -> None:
    stage = await OperatorStage().start()
    require_live(await stage.client.create(a_job("migrate")))
    done: JsonObject = {"status": {"succeeded": 1}}
    await stage.client.patch(Ref(JOB, "shop", "migrate"), done, subresource="status")

    assert await hold_reason(stage, a_pod(SERVER)) == SEALED


@pytest.mark.parametrize(
    "container",
    [
        {"args": ["server", "-dev"]},
        {"env": [{"name": "VAULT_SEAL_TYPE", "value": "transit"}]},
    ],
)
async def test_vault_that_unseals_itself_is_ready(container: dict[str, Json]) -> None:
    stage = await OperatorStage().start()

    assert await hold_reason(stage, a_pod(SERVER, **container)) == ""


async def test_vault_with_a_seal_in_its_config_is_ready() -> None:
    stage = await OperatorStage().start()
    config: JsonObject = {"config.hcl": 'seal "awskms" {}'}
    require_live(await stage.client.create(an_object(CONFIG_MAP, "vault-config", data=config)))

    assert await hold_reason(stage, a_pod(SERVER)) == ""


async def test_other_pods_are_ready() -> None:
    stage = await OperatorStage().start()

    assert await hold_reason(stage, a_pod({"app.kubernetes.io/name": "web"})) == ""


def test_an_invalid_hold_is_reported_with_its_line() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        parse_knowledge(b"holds:\n- name: x\n", "rows.yaml")

    errors = [
        exception for exception in caught.value.exceptions if isinstance(exception, TidegateError)
    ]
    assert {(error.code, str(error.location)) for error in errors} == {
        ("file.missing", "rows.yaml:2:3 (holds[0])")
    }
    for error, key in zip(errors, ("source", "pods", "reason", "until_jobs"), strict=True):
        assert f"`{key}`" in error.problem
