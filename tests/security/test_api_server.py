"""Whatever an API server answers, there is an error, bounded memory, and a quiet terminal."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.security.api_server import MaliciousAnswer, hostile_server
from tests.security.test_printing import obeyed
from tests.support.tidegate_runs import config_map, write_unit
from tidegate.kube.cluster import _read_events
from tidegate.kube.http_responses import LineSplitter
from tidegate.model.k8s.objects import Kind
from tidegate.world.messages import ServerError, WatchEnded
from tidegate.world.requests import RequestId

MOST_MEMORY = 2_000 * 1024 * 1024
SECRET = Kind("", "v1", "Secret")


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run in a process with limited memory and time."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))

    return subprocess.run(
        [sys.executable, "-m", "tidegate", *map(str, words)],
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
        preexec_fn=limit,
    )


@pytest.mark.parametrize("at_once", [True, False], ids=["from the first answer", "for objects"])
@pytest.mark.parametrize("malice", MaliciousAnswer, ids=lambda malice: malice.value)
def test_a_server_that_means_no_good_is_an_error(
    malice: MaliciousAnswer, *, at_once: bool, tmp_path: Path
) -> None:
    unit = write_unit(tmp_path / "unit", web=config_map())

    with hostile_server(malice, tmp_path, at_once=at_once) as config:
        ran = run("plan", unit, "--kubeconfig", config)

    assert (
        ran.returncode in {0, 3, 5}
        if malice is MaliciousAnswer.HUGE_NUMBERS
        else ran.returncode == 5
    )
    assert "Traceback" not in ran.stderr
    assert "MemoryError" not in ran.stderr
    assert obeyed(ran.stdout + ran.stderr) == []


@pytest.mark.parametrize(
    "line",
    [
        b"garbage\n",
        b'{"type":"ADDED","object":5}\n',
        b'{"type":"EXPLODED","object":{"metadata":{"name":"a"}}}\n',
        b'{"type":"ADDED","object":' + b"[" * 100_000 + b"\n",
        b"\xff\xfe\n",
        b" " * 5_000,
    ],
    ids=["garbage", "a number", "an unknown type", "nested", "not text", "no end"],
)
def test_an_event_that_cannot_be_read_ends_its_stream(line: bytes) -> None:
    (end,) = _read_events(LineSplitter(limit=4_096), line, RequestId(1), SECRET)

    assert isinstance(end, WatchEnded)
    assert isinstance(end.outcome, ServerError)
    assert end.outcome.reason == "Unreadable"
