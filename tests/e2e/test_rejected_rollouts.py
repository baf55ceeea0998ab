"""On a real API server: no secret remains anywhere, and a damaged journal is rebuilt."""

from __future__ import annotations

import base64
from pathlib import Path

import msgspec
import pytest

from tests.e2e.conftest import Site
from tests.e2e.output import numbers_in
from tests.support.canaries import CANARY, KEY, SEALED_DATA
from tests.support.canary_search import is_in, left_in
from tests.support.cluster_client import ClusterClient, require_items
from tests.support.sops_program import encrypt
from tests.support.tidegate_command import Tidegate
from tidegate.engine.records.storage import TIDEGATE_NAMESPACE
from tidegate.model.k8s.objects import Json, Kind, Ref
from tidegate.world.requests import List, Selection, Verb, Write

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]

SECRET = Kind("", "v1", "Secret")
ENCODED = base64.b64encode(CANARY.encode()).decode()
HIDDEN = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: hidden}}\ndata: {{a: {CANARY}}}\n"
LOGIN = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: login}}\ndata: {{a: {ENCODED}}}\n"
REFUSED = f"""apiVersion: v1
kind: Secret
metadata: {{name: refused, annotations: {{argocd.argoproj.io/sync-wave: "1"}}}}
type: kubernetes.io/dockerconfigjson
stringData: {{.dockerconfigjson: {CANARY}}}
"""


def write_unit(folder: Path, **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        path = folder / f"{name}.yaml"
        sealed = name == "hidden"
        path.write_bytes(encrypt(path, text, KEY, *SEALED_DATA) if sealed else text.encode())
    return folder


@pytest.mark.parametrize("output", ["text", "json"])
async def test_a_rejected_rollout_leaks_no_secret_value(
    output: str, site: Site, tmp_path: Path
) -> None:
    unit = write_unit(tmp_path / "unit", hidden=HIDDEN, login=LOGIN, refused=REFUSED)
    tidegate, config = Tidegate(tmp_path / "home"), site.kubeconfig()
    async with site.client(config) as client:
        target_flags = (
            "--kubeconfig",
            str(config),
            "--namespace",
            client.namespace,
            "--name",
            output,
        )
        runs = [
            await tidegate.run(
                "sync", unit, "--yes", *target_flags, "-o", output, SOPS_AGE_KEY=KEY.identity
            ),
            await tidegate.run(
                "plan", unit, *target_flags, "-o", output, SOPS_AGE_KEY=KEY.identity
            ),
            await tidegate.run(
                "status", unit, "--journal", *target_flags, "-o", output, SOPS_AGE_KEY=KEY.identity
            ),
        ]
        left = await left_in(client)

    assert runs[0].code != 0
    messages = [(run.stdout + run.stderr).encode() for run in runs]
    assert [text for text in (*messages, *left) if is_in(CANARY, text)] == []


async def test_a_damaged_journal_is_replaced(site: Site, tmp_path: Path) -> None:
    unit = write_unit(tmp_path / "unit", login=LOGIN, hidden=HIDDEN)
    tidegate, config = Tidegate(tmp_path / "home"), site.kubeconfig()
    async with site.client(config) as client:
        target_flags = (
            "--kubeconfig",
            str(config),
            "--namespace",
            client.namespace,
            "--name",
            "mended",
        )
        first = await tidegate.run("sync", unit, "--yes", *target_flags, SOPS_AGE_KEY=KEY.identity)
        await _damage(client, f"{client.namespace}/mended")
        refused = await tidegate.run(
            "sync", unit, "--yes", *target_flags, SOPS_AGE_KEY=KEY.identity
        )
        fixed = await tidegate.run(
            "status", unit, "--rebuild-journal", *target_flags, SOPS_AGE_KEY=KEY.identity
        )
        (unit / "hidden.yaml").unlink()
        pruned = await tidegate.run("sync", unit, "--yes", *target_flags, "--prune", "-o", "json")

    assert first.code == 0, first.stderr
    assert refused.code == 5
    assert "error[journal.unreadable]" in refused.stderr
    assert fixed.code == 0, fixed.stderr
    assert 2 in numbers_in(fixed.stdout)
    assert pruned.code == 0, pruned.stderr
    assert '"event":"object.pruned"' in pruned.stdout


async def _damage(client: ClusterClient, unit: str) -> None:
    (page,) = await client.ask(List(Selection(SECRET, TIDEGATE_NAMESPACE)))
    label = unit.replace("/", ".")
    (head,) = [item for item in require_items(page) if f'"{label}"'.encode() in item.body]
    patch: Json = {"data": {"journal.json": base64.b64encode(b"damaged").decode()}}
    await client.ask(_patch(head.ref, patch))


def _patch(ref: Ref, body: Json) -> Write:
    return Write(verb=Verb.PATCH, ref=ref, body=msgspec.json.encode(body), manager="other-client")
