"""Three layers on a simulated cluster get the conditions of the real kustomize-controller.

Its conditions were recorded on a real API server: `make test-peers`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.controller_transcript import TRANSCRIPT, status_fields
from tests.support.flux_layers import sops_age, three_layers
from tests.support.live_statuses import commit
from tests.support.persistent_sandbox import KUSTOMIZATION, PersistentSandbox
from tests.support.repositories import Repository
from tests.support.sops_program import AgeKey


def test_layers_have_the_conditions_of_kustomize_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, key = Repository(tmp_path / "platform"), AgeKey.generate()
    three_layers(made, key)
    commit(made.root)
    cluster = PersistentSandbox.make(tmp_path, monkeypatch, sops_age("flux-system", key))

    ran = cluster.sync(made.root)

    assert ran.code == 0, ran.stdout + ran.stderr
    by_name = {
        name: status_fields(item)
        for name, item in cluster.all(KUSTOMIZATION, "flux-system").items()
    }
    assert json.loads(json.dumps(by_name)) == json.loads(TRANSCRIPT.read_text())
