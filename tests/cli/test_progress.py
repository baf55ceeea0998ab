"""The progress line: shown on a terminal only, and cleared before the output."""

from __future__ import annotations

import io
import socket
from pathlib import Path

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.terminal_program import on_terminal
from tests.support.tidegate_runs import FIRST, kubeconfig, tidegate
from tests.support.virtual_terminal import VirtualTerminal
from tidegate.cli.progress import ProgressLine

VERBS = [
    ("sync", "--sandbox", "--speed", "0"),
    ("sync", "--sandbox", "--dry-run"),
    ("delete", "--sandbox"),
    ("plan",),
    ("render",),
    ("simulate",),
]


@pytest.mark.parametrize("args", VERBS, ids=" ".join)
def test_the_progress_line_is_shown_at_once_and_cleared(args: tuple[str, ...]) -> None:
    verb, *options = args
    with on_terminal("tidegate", verb, FIRST, *options) as program:
        code = program.finish()

        assert code == 0
        assert program.written.partition("\x1b[K")[2].split("...")[0].endswith(FIRST)
        assert "..." not in program.vt.text


UNIT = """\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec: {interval: 1h, path: ./apps, prune: true, sourceRef: {kind: GitRepository, name: repo}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: repo, namespace: flux-system}
spec: {interval: 1h, url: https://git.example.org/repo}
"""
SETTINGS = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: default}}\n"
SEARCHES = [
    ("flux", "tree", "kustomization", "apps", "-C"),
    ("trace", "configmap/settings"),
    ("flux", "build", "kustomization", "apps", "-C"),
    ("flux", "diff", "kustomization", "apps", "-C"),
]


@pytest.mark.parametrize("args", SEARCHES, ids=" ".join)
def test_a_search_has_a_progress_line_that_is_cleared(
    wording: RecordedWording, args: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "apps").mkdir()
    (tmp_path / "unit.yaml").write_text(UNIT)
    (tmp_path / "apps/settings.yaml").write_text(SETTINGS)

    with on_terminal("tidegate", *args, str(tmp_path)) as program:
        code = program.finish()

        assert code == 0
        wording(program.written.partition("\x1b[K")[2].partition(" /")[0])
        assert "..." not in program.vt.text


@pytest.mark.parametrize("args", [("doctor",), ("health", f"{FIRST}/settings.yaml"), ("cache",)])
def test_a_command_that_may_take_long_has_a_progress_line(args: tuple[str, ...]) -> None:
    with on_terminal("tidegate", *args) as program:
        code = program.finish()

        assert code == 0
        assert "..." in program.written
        assert "..." not in program.vt.text


def test_an_error_replaces_the_progress_line(tmp_path: Path) -> None:
    with on_terminal("tidegate", "plan", str(tmp_path / "nowhere")) as program:
        code = program.finish()

        assert code == 3
        assert "..." in program.written
        assert program.vt.screen[0].startswith("error[render.path]: ")


def test_an_interruption_replaces_the_progress_line(
    wording: RecordedWording, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = kubeconfig(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}")
        with on_terminal(
            "tidegate", "sync", FIRST, "--yes", "--kubeconfig", str(config)
        ) as program:
            program.read_until(lambda vt: vt.text.endswith("...") and FIRST not in vt.text)
            program.type("\x03")
            code = program.finish()

            assert code == 130
            wording(program.vt.text.strip())


def test_a_pipe_gets_no_progress_line() -> None:
    ran = tidegate("plan", FIRST)

    assert ran.returncode == 0
    assert "..." not in ran.stdout
    assert ran.stderr == ""


@pytest.mark.parametrize("kind", ["dumb", ""])
def test_a_terminal_without_cursor_control_gets_no_progress_line(kind: str) -> None:
    with on_terminal("tidegate", "plan", FIRST, TERM=kind) as program:
        program.finish()

        assert program.vt.screen[0] == tidegate("plan", FIRST).stdout.splitlines()[0]


def test_json_output_has_no_progress_line() -> None:
    with on_terminal("tidegate", "plan", FIRST, "-o", "json") as program:
        program.finish()

        assert program.vt.history[0].startswith("{")


class Tty(io.StringIO):
    """A stream that reports itself as a terminal."""

    def isatty(self) -> bool:
        return True


def shown(stream: Tty) -> str:
    vt = VirtualTerminal(80, 24)
    vt.feed(stream.getvalue())
    return vt.text


def test_a_line_that_is_too_long_for_the_terminal_is_cut() -> None:
    stream = Tty()

    line = ProgressLine.for_stream(stream, {"TERM": "xterm"})
    line.update("reading " + "x" * 200)
    text = shown(stream)
    line.clear()

    assert len(text) == 77
    assert text.endswith("...")
    assert shown(stream) == ""


def test_control_characters_of_a_name_are_not_sent_to_the_terminal() -> None:
    stream = Tty()

    ProgressLine.for_stream(stream, {"TERM": "xterm"}).update("reading \x1b[2Jshop\n")

    assert "\x1b[2J" not in stream.getvalue()
    assert "\n" not in stream.getvalue()


def test_redirected_output_leaves_the_progress_line_on_the_terminal(tmp_path: Path) -> None:
    plan = tmp_path / "plan.txt"
    with plan.open("wb") as kept, on_terminal("tidegate", "plan", FIRST, kept=kept) as program:
        code = program.finish()

        assert (code, program.vt.text.strip()) == (0, "")
        assert "..." in program.written
        assert "..." not in plan.read_text()
