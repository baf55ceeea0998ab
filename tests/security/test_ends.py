"""Rollouts that end in mid-flight: what is said, and with which exit code."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.in_process_command import run_in_process
from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import FIRST, ROOT, tidegate
from tidegate.cli.screen.screen import STOPPING_MESSAGE
from tidegate.external.process import Limits
from tidegate.model.times import Ms

LATE, STOPPED = 8, 130
COMMAND = [sys.executable, "-m", "tidegate", "sync", FIRST, "--sandbox", "--speed", "1"]


@pytest.fixture(autouse=True)
def _default_hangup() -> Iterator[None]:
    """Let commands start with the default handler, even if the tests run under `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def environment(user_home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(user_home), "TERM": "xterm"}


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_rollout_cleanly(
    number: signal.Signals, tmp_path: Path, wording: RecordedWording
) -> None:
    with subprocess.Popen(
        COMMAND, cwd=ROOT, env=environment(tmp_path), stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        first = program.stdout.readline()
        program.send_signal(number)
        rest = program.stdout.read()

    assert first
    assert program.returncode == STOPPED
    assert STOPPING_MESSAGE in rest
    (summary,) = [line for line in rest.splitlines() if line.split()[1:2] == ["rollout"]]
    wording(re.sub(r"[\d.]+(?=s| of)", "N", summary).split(maxsplit=1)[1])


def test_a_closed_terminal_ends_a_rollout_cleanly(tmp_path: Path) -> None:
    journal = tmp_path / "stderr"
    with journal.open("wb") as text:
        number, master = pty.fork()
        if number == 0:  # the child
            os.chdir(ROOT)
            os.dup2(text.fileno(), 2)
            os.execve(sys.executable, COMMAND, environment(tmp_path))  # noqa: S606
        seen = b""
        while b"wave" not in seen:
            seen += os.read(master, 65_536)
        os.close(master)
        _, status = os.waitpid(number, 0)

    assert os.waitstatus_to_exitcode(status) == STOPPED
    assert "Traceback" not in journal.read_text()


def _ignore_hangups() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def test_an_ignored_hangup_does_not_stop_a_rollout(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*COMMAND[:-1], "200"],
        cwd=ROOT,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=_ignore_hangups,  # noqa: PLW1509 - it has no threads yet
    ) as program:
        assert program.stdout is not None
        program.stdout.readline()
        program.send_signal(signal.SIGHUP)
        rest = program.stdout.read()

    assert program.returncode == 0
    assert STOPPING_MESSAGE not in rest


def test_a_rollout_that_times_out_says_so(wording: RecordedWording) -> None:
    ran = tidegate("sync", FIRST, "--sandbox", "--timeout", "30s")

    assert ran.returncode == LATE
    wording(line for line in ran.stdout.splitlines() if line.split()[1:2] == ["rollout"])


def test_a_rollout_that_times_out_has_an_outcome_of_its_own() -> None:
    ran = tidegate("sync", FIRST, "--sandbox", "--timeout", "30s", "-o", "json")

    finished, explained = map(json.loads, ran.stdout.splitlines()[-2:])
    assert ran.returncode == LATE
    assert (finished["event"], finished["reason"]) == ("rollout.finished", "stopped")
    assert (explained["event"], explained["outcome"]) == ("rollout.explained", "timed-out")
    assert finished["message"] == explained["message"] != ""


KUBECONFIG = """apiVersion: v1
kind: Config
current-context: a
clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]
users:
- name: a
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: sh
      args: [-c, 'sleep 1000']
      interactiveMode: Never
contexts: [{name: a, context: {cluster: a, user: a}}]
"""


@pytest.mark.parametrize("verb", [("sync", "--yes"), ("plan",), ("status",), ("delete", "--yes")])
def test_a_plugin_that_hangs_is_reported_with_a_code_of_its_own(
    verb: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tidegate.kube.access.plugin.NON_INTERACTIVE_LIMITS", Limits(time=Ms(200), output=1_000)
    )
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    command = (verb[0], str(ROOT / FIRST), *verb[1:], "--kubeconfig", "kubeconfig")

    text = run_in_process(tmp_path, environment(tmp_path), command)

    assert text.code == LATE
    assert "error[cluster.login-timeout]" in text.stderr
