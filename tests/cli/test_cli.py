"""The command line, from outside."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import click
import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.tidegate_runs import FIRST, ROOT, kubeconfig
from tidegate.cli.completion import complete_context, complete_engine
from tidegate.cli.exit_codes import EXIT_CODE_MEANINGS
from tidegate.cli.main import COMMANDS, cli
from tidegate.cli.options import INCOMPLETE
from tidegate.cli.outcome_codes import HAS_CHANGES, OUTCOME_CODES
from tidegate.errors import TidegateError

CLUSTERS_AND_ROLLOUTS = (
    *("tidegate.kube", "tidegate.sandbox.world", "tidegate.sandbox.server", "tidegate.rollout"),
    *("tidegate.engine.driver", "tidegate.engine.decide", "tidegate.engine.executor"),
)
HEAVY = ("aiohttp", "yaml", "msgspec", "asyncio", "tidegate.actions", "tidegate.engine")
"""What a verb imports when it runs, and not when its help is shown."""

NOT_FOR_A_PLAN = (
    *("tidegate.sandbox.node", "tidegate.sandbox.controllers.workloads"),
    *("tidegate.source.oci", "tidegate.source.bucket", "tidegate.source.archive"),
    *("tidegate.kube", "aiohttp", "xml", "tarfile", "zipfile"),
)


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tidegate", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def imported(*arguments: str) -> tuple[str, set[str]]:
    """The output of a command, and the modules that are imported while it runs."""
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "tidegate", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    messages = (line for line in ran.stderr.splitlines() if line.startswith("import time:"))
    return ran.stdout, {line.rpartition("|")[2].strip() for line in messages}


def test_help_imports_nothing_heavy_and_no_verb() -> None:
    _, loaded = imported("--help")

    assert "tidegate.cli.main" in loaded
    assert loaded.isdisjoint(HEAVY)
    assert [name for name in loaded if name.startswith("tidegate.cli.commands.")] == []


@pytest.mark.parametrize("verb", ["lint", "graph", "waves", "tree"])
def test_a_check_of_git_alone_has_no_cluster_and_no_rollout(tmp_path: Path, verb: str) -> None:
    map_file = tmp_path / "map.yaml"
    map_file.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n")

    _, loaded = imported(verb, str(tmp_path))

    assert "tidegate.schema.builtin" in loaded
    assert [name for name in loaded if name.startswith(CLUSTERS_AND_ROLLOUTS)] == []


@pytest.mark.parametrize("verb", [name for group in COMMANDS.values() for name in group])
def test_the_help_of_a_verb_has_examples_and_imports_nothing_heavy(verb: str) -> None:
    shown, loaded = imported(verb, "--help")

    assert f"{verb}" in shown.partition("  Examples:\n")[2]
    assert loaded.isdisjoint(HEAVY)


def test_a_plan_of_a_directory_imports_neither_controllers_nor_sources(
    wording: RecordedWording,
) -> None:
    shown, loaded = imported("plan", FIRST)

    wording(shown.splitlines()[-1])
    assert "tidegate.sandbox.world" in loaded
    assert [name for name in loaded if name.startswith(NOT_FOR_A_PLAN)] == []


def test_the_version_is_that_of_the_package() -> None:
    assert run("version").stdout.startswith(f"tidegate {version('tidegate')} ")
    assert json.loads(run("version", "-o", "json").stdout)["tidegate"] == version("tidegate")


def test_a_usage_error_names_the_mistake_and_has_exit_code_two() -> None:
    unknown = run("frobnicate")
    wrong = run("version", "--colour")

    assert (unknown.returncode, wrong.returncode) == (2, 2)
    assert "frobnicate" in unknown.stderr
    assert "--colour" in wrong.stderr


def test_a_misspelt_verb_is_reported_with_the_closest_one() -> None:
    ran = run("simulat", "examples/first")

    assert ran.returncode == 2
    assert "'simulat'" in ran.stderr
    assert "'simulate'" in ran.stderr


def test_the_version_is_an_option_too_and_help_a_verb() -> None:
    assert run("--version").stdout == run("version").stdout
    assert run("help", "cache", "clear").stdout == run("cache", "clear", "--help").stdout
    assert run("help", "cachee").returncode == 2


def test_exit_codes_are_one_table() -> None:
    page = (ROOT / "docs" / "reference" / "exit-codes.md").read_text()
    by_name = {int(code): meaning for code, meaning in re.findall(r"\| (\d+) \| (.*) \|", page)}
    classes = [TidegateError]
    for item in classes:
        classes += item.__subclasses__()

    of_commands = {2, HAS_CHANGES, INCOMPLETE}
    used = {*OUTCOME_CODES.values(), *of_commands, *(class_.exit_code for class_ in classes)}
    assert by_name == EXIT_CODE_MEANINGS
    assert used == {*EXIT_CODE_MEANINGS}


def test_contexts_and_engines_are_completed(tmp_path: Path) -> None:
    config = kubeconfig(tmp_path, "https://example.org")
    context = click.Context(cli, info_name="tidegate", **cli.context_settings)
    context.params = {"kubeconfig": str(config)}
    option = click.Option(["--context"])

    assert complete_context(context, option, "") == ["a"]
    assert complete_context(context, option, "b") == []
    context.params = {"kubeconfig": str(tmp_path / "nowhere")}
    assert complete_context(context, option, "") == []
    assert complete_engine(context, option, "argocd,") == [
        "argocd,native",
        "argocd,tidegate",
        "argocd,argocd=3.5",
        "argocd,argocd=3.6",
        "argocd,flux",
    ]
