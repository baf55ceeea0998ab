"""The output of each command for the example platforms, outside of Git and in a pipe.

`--golden` records it. The only flags are those that the cluster of a platform needs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.platforms import PLATFORMS, given_for, lay_out, type_among
from tests.support.tidegate_runs import ROOT

KEPT = ROOT / "tests" / "data" / "platforms"
PLAYED = ("simulate", "sync --sandbox")
"""Of these verbs, those that need a cluster."""


@pytest.fixture(scope="module")
def platforms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lay_out(tmp_path_factory.mktemp("platforms"), *PLATFORMS)


@pytest.mark.parametrize("verb", ["lint", "plan", "simulate", "waves", "graph", "sync --sandbox"])
@pytest.mark.parametrize("name", PLATFORMS)
def test_a_command_prints_the_recorded_output_for_a_platform(
    platforms: Path, name: str, verb: str, pytestconfig: pytest.Config
) -> None:
    args = (*verb.split(), name, *(given_for(name) if verb in PLAYED else ()))

    ran = type_among(platforms, *args)

    shown = f"$ tidegate {' '.join(args)}\n{ran.stdout}{ran.stderr}"
    golden = KEPT / name / f"{verb.split(maxsplit=1)[0]}.txt"
    if pytestconfig.getoption("--golden"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(shown)
    assert shown == golden.read_text()
    assert ran.code == 0
    assert str(platforms) not in shown, "locations are relative to the working directory"
