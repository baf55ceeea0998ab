"""The transcripts of all pages hold in a fresh directory, outside of any repository."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from tests.cli.test_examples import ALONE, name_of
from tests.support.documented_examples import EXAMPLE, ROOT
from tidegate.cli.main import run_argv

IN_A_REPOSITORY = ("monitoring-appset.yaml", "waves examples/chart ", "tidegate diff ")
"""Commands that need a repository: a generator that reads the repository of its file, a source by
its path in its repository, and revisions."""
PAGES = [
    (page, command)
    for page, command in ALONE
    if not any(part in command for part in IN_A_REPOSITORY)
]
TREES = ("examples", "charts")


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the transcripts name, and nothing else."""
    place = tmp_path_factory.mktemp("fresh")
    for name in TREES:
        shutil.copytree(ROOT / name, place / name, symlinks=True)
    return place


@pytest.mark.parametrize(("page", "command"), PAGES, ids=name_of)
def test_a_transcript_holds_outside_of_git(
    page: Path, command: str, fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith(("XDG_", "SOPS_", "KUBECONFIG"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(fresh)
    args = shlex.split(command)[1:]
    monkeypatch.setattr(sys, "argv", ["tidegate", *args])
    shown = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)

    with redirect_stdout(shown), redirect_stderr(shown):
        run_argv(args)

    buffer = shown.buffer
    assert isinstance(buffer, io.BytesIO)
    assert buffer.getvalue().decode() == dict(EXAMPLE.findall(page.read_text()))[command]
