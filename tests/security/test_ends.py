"""Rollouts that end in mid-flight: what is said, and with which exit code."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.inside import typed
from tests.support.tidegate_runs import FIRST, ROOT, tidegate
from tidegate.external.process import Limits
from tidegate.model.times import Ms

LATE, STOPPED = 8, 130
COMMAND = [sys.executable, "-m", "tidegate", "sync", FIRST, "--sandbox", "--speed", "1"]


def environment(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "xterm"}


@pytest.mark.parametrize("blow", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
def test_a_blow_ends_a_rollout_cleanly(blow: signal.Signals, tmp_path: Path) -> None:
    with subprocess.Popen(
        COMMAND, cwd=ROOT, env=environment(tmp_path), stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        first = program.stdout.readline()
        program.send_signal(blow)
        rest = program.stdout.read()

    assert first
    assert program.returncode == STOPPED
    assert "stopping: what is under way ends first" in rest
    assert "stopped after" in rest


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


def test_who_does_not_want_to_hear_of_a_closed_terminal_does_not(tmp_path: Path) -> None:
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
    assert "stopping" not in rest


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_rollout_whose_time_is_up_says_so(output: str) -> None:
    ran = tidegate("sync", FIRST, "--sandbox", "--timeout", "30s", "-o", output)

    assert ran.returncode == LATE
    assert "its time is up" in ran.stdout


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
def test_a_plugin_that_hangs_is_told_with_a_code_of_its_own(
    verb: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tidegate.kube.access.plugin.NON_INTERACTIVE_LIMITS", Limits(time=Ms(200), output=1_000)
    )
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    command = (verb[0], str(ROOT / FIRST), *verb[1:], "--kubeconfig", "kubeconfig")

    text = typed(tmp_path, environment(tmp_path), command)

    assert text.code == LATE
    assert "error[cluster.login-timeout]" in text.stderr
    assert "exec plugin" in text.stderr
