"""What is said while there is nothing else to show: on a terminal only, and not for long."""

from __future__ import annotations

import io
import socket
from pathlib import Path

import pytest

from tests.support.on_terminal import on_terminal
from tests.support.tidegate_runs import FIRST, kubeconfig, tidegate
from tests.support.vt import Vt
from tidegate.cli.progress import ProgressLine

VERBS = [
    ("sync", "--sandbox", "--speed", "0"),
    ("sync", "--sandbox", "--dry-run"),
    ("delete", "--sandbox"),
    ("plan",),
    ("render",),
    ("simulate",),
]


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_the_first_words_come_at_once_and_do_not_stay(words: tuple[str, ...]) -> None:
    verb, *options = words
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
    ("reading", "tree", "kustomization", "apps"),
    ("reading", "trace", "configmap/settings"),
    ("looking for units", "build", "kustomization", "apps"),
    ("looking for units", "diff", "kustomization", "apps"),
]


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: search[1])
def test_who_looks_for_something_says_so_and_then_shows_it_alone(
    search: tuple[str, ...], tmp_path: Path
) -> None:
    text, *words = search
    (tmp_path / "apps").mkdir()
    (tmp_path / "unit.yaml").write_text(UNIT)
    (tmp_path / "apps/settings.yaml").write_text(SETTINGS)

    with on_terminal("tidegate", *words, "-C", str(tmp_path)) as program:
        code = program.finish()

        assert code == 0
        assert program.written.partition("\x1b[K")[2].startswith(text)
        assert "..." not in program.vt.text


@pytest.mark.parametrize("words", [("doctor",), ("health", f"{FIRST}/settings.yaml"), ("cache",)])
def test_what_may_take_long_says_what_it_does_meanwhile(words: tuple[str, ...]) -> None:
    with on_terminal("tidegate", *words) as program:
        code = program.finish()

        assert code == 0
        assert "..." in program.written
        assert "..." not in program.vt.text


def test_an_error_takes_the_place_of_what_was_said(tmp_path: Path) -> None:
    with on_terminal("tidegate", "plan", str(tmp_path / "nowhere")) as program:
        code = program.finish()

        assert code == 3
        assert "reading" in program.written
        assert program.vt.screen[0].startswith("error[render.path]: ")


def test_an_interruption_takes_the_place_of_what_was_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = kubeconfig(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}")
        with on_terminal(
            "tidegate", "sync", FIRST, "--yes", "--kubeconfig", str(config)
        ) as program:
            program.read_until(lambda vt: vt.text == "connecting to the cluster...")
            program.type("\x03")
            code = program.finish()

            assert code == 130
            assert program.vt.text.strip() == "interrupted"


def test_in_a_pipe_nothing_is_said() -> None:
    ran = tidegate("plan", FIRST)

    assert ran.returncode == 0
    assert "..." not in ran.stdout
    assert ran.stderr == ""


@pytest.mark.parametrize("kind", ["dumb", ""])
def test_a_terminal_that_cannot_move_its_cursor_is_told_nothing(kind: str) -> None:
    with on_terminal("tidegate", "plan", FIRST, TERM=kind) as program:
        program.finish()

        assert program.vt.screen[0].startswith("target: none")


def test_documents_are_not_disturbed() -> None:
    with on_terminal("tidegate", "plan", FIRST, "-o", "json") as program:
        program.finish()

        assert program.vt.history[0].startswith("{")


class Tty(io.StringIO):
    """A terminal, as far as a stream tells."""

    def isatty(self) -> bool:
        return True


def shown(stream: Tty) -> str:
    vt = Vt(80, 24)
    vt.feed(stream.getvalue())
    return vt.text


def test_what_is_too_long_for_the_terminal_is_cut() -> None:
    stream = Tty()

    doing = ProgressLine.for_stream(stream, {"TERM": "xterm"})
    doing.update("reading " + "x" * 200)
    text = shown(stream)
    doing.clear()

    assert len(text) == 77
    assert text.endswith("...")
    assert shown(stream) == ""


def test_what_a_name_hides_is_not_sent_to_the_terminal() -> None:
    stream = Tty()

    ProgressLine.for_stream(stream, {"TERM": "xterm"}).update("reading \x1b[2Jshop\n")

    assert "\x1b[2J" not in stream.getvalue()
    assert "\n" not in stream.getvalue()


def test_what_is_piped_on_says_meanwhile_what_is_being_done(tmp_path: Path) -> None:
    plan = tmp_path / "plan.txt"
    with plan.open("wb") as kept, on_terminal("tidegate", "plan", FIRST, kept=kept) as program:
        code = program.finish()

        assert (code, program.vt.text.strip()) == (0, "")
        assert "reading" in program.written
        assert "..." not in plan.read_text()
