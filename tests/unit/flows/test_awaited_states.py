"""What a unit says it depends on may be asked to be ready, to be there, or to be gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.repo_texts import application, config_map
from tests.fakes.rule_pages import write_files
from tidegate.flows.pointing import Pointed
from tidegate.flows.render import own_setting
from tidegate.flows.session import Target
from tidegate.flows.simulate import Playing, Simulated, simulate
from tidegate.flows.wiring import Simulation
from tidegate.model.event import Result
from tidegate.model.moment import MINUTE, Ms
from tidegate.model.semantics import TIDEGATE


async def play(folder: Path, said: str) -> Simulated:
    """A rollout of an Application that depends on this."""
    head = "metadata: {name: shop, namespace: argocd"
    noted = f'{head}, annotations: {{tidegate.dev/depends-on: "{said}"}}'
    files = {
        "app.yaml": application().replace(head, noted),
        "shop/settings.yaml": config_map("settings"),
    }
    (run,) = await simulate(
        Pointed(what=str(write_files(folder, files))),
        [TIDEGATE],
        Target(simulation=Simulation()),
        own_setting(offline=True, maps=()),
        Playing(until=Ms(20 * MINUTE), greenfield=True),
    )
    return run


@pytest.mark.parametrize(
    ("said", "passes"),
    [
        ("v1/Namespace/kube-system", True),
        ("v1/Namespace/kube-system@ready", True),
        ("v1/Namespace/kube-system@present", True),
        ("v1/Namespace/kube-system@absent", False),
        ("v1/ConfigMap/default/old@absent", True),
        ("v1/ConfigMap/default/old@present", False),
    ],
)
async def test_a_unit_begins_when_what_it_names_is_as_it_asks(
    said: str, *, passes: bool, tmp_path: Path
) -> None:
    run = await play(tmp_path, said)

    assert (run.result is Result.PASSED) is passes
    if not passes:
        told = [event.sentence for event in run.events]
        reason = "it is still there" if said.endswith("@absent") else "it is not there yet"
        assert any(reason in one for one in told)
