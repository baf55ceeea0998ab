"""What many tests share: the options of the test run, and one real control plane for all of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from plane import ControlPlane
from tests.support.recorded_wording import DIRECTORY, RecordedWording
from tidegate.cli.output import set_json_errors
from tidegate.model.display_paths import clear_roots

# What fails once shall fail again: a run that finds something new belongs on a developer's client.
# How long an example takes says how busy the machine is.
settings.register_profile(
    "same", derandomize=True, deadline=None, suppress_health_check=(HealthCheck.too_slow,)
)
settings.load_profile("same")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", action="store_true", help="rewrite recorded output")


@pytest.fixture(autouse=True)
def forget_process_state() -> None:
    """What commands of other tests have left in this process is forgotten."""
    clear_roots()
    set_json_errors(False)


@pytest.fixture
def wording(request: pytest.FixtureRequest, tmp_path: Path) -> RecordedWording:
    """Compare sentences with those recorded for this test; `--golden` records them."""
    module = request.path.relative_to(Path(__file__).parent).with_suffix(".txt")
    return RecordedWording(
        request.node.name,
        DIRECTORY / module,
        hidden={str(tmp_path): "TMP"},
        rewrite=bool(request.config.getoption("--golden")),
    )


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    """The control plane of this test run: shared, so tests use a namespace each."""
    with ControlPlane.start() as running:
        yield running
