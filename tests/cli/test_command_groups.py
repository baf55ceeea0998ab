"""The command line as a whole: groups of commands, options by section, and commands with PATH."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest

from tests.support.tidegate_runs import config_map, tidegate, write_unit
from tidegate.cli.command import RENDERING_OPTIONS, TidegateCommand
from tidegate.cli.main import COMMANDS, HIDDEN_COMMANDS, cli

PLATFORM = "examples/platform"


def top_level() -> list[tuple[str, click.Command]]:
    context = click.Context(cli, **cli.context_settings)
    names = [name for section in COMMANDS.values() for name in section]
    commands = [(name, cli.get_command(context, name)) for name in names]
    return [(name, command) for name, command in commands if command is not None]


def test_help_lists_commands_by_section_and_no_hidden_ones() -> None:
    lines = tidegate("--help").stdout.splitlines()

    titles = [line.rstrip(":") for line in lines if line and not line.startswith(" ")]
    listed = [line.split()[0] for line in lines if re.match(r"^  [a-z]", line)]
    assert titles[-len(COMMANDS) :] == [*COMMANDS]
    assert listed[-sum(map(len, COMMANDS.values())) :] == [
        name for section in COMMANDS.values() for name in section
    ]
    assert not set(HIDDEN_COMMANDS) & set(listed)
    assert all(tidegate(name).returncode == 0 for name in HIDDEN_COMMANDS)


@pytest.mark.parametrize("name", ["lint", "plan", "simulate", "sync", "status", "delete", "graph"])
def test_help_of_a_command_refers_to_the_rendering_options(name: str) -> None:
    shown, rendering = tidegate(name, "--help").stdout, tidegate("help", "rendering").stdout

    assert "tidegate help rendering" in shown
    assert "--set-string" not in shown
    assert "--set-string" in rendering


def test_every_rendering_option_is_listed_by_render_or_by_the_topic() -> None:
    context = click.Context(cli, **cli.context_settings)
    known = {
        parameter.name
        for _, command in top_level()
        if isinstance(command, TidegateCommand)
        for parameter in command.get_params(context)
    }

    assert known >= RENDERING_OPTIONS


WITHOUT_PATH = {
    "rule": "explains a code",
    "kinds": "describes a kind",
    "health": "reads objects from files",
}
"""Verbs that do not work on a repository, with what they do instead."""


def verbs() -> dict[str, click.Command]:
    """Return the top-level verbs that work on a repository, and the commands of a group of them."""
    context, result = click.Context(cli, **cli.context_settings), dict[str, click.Command]()
    for section in ("Check", "Roll out", "Inspect"):
        for name in COMMANDS[section]:
            command = cli.get_command(context, name)
            assert command is not None
            if not isinstance(command, click.Group):
                result[name] = command
                continue
            for member in command.list_commands(context):
                child = command.get_command(context, member)
                assert child is not None
                result[f"{name} {member}"] = child
    return {
        name: command for name, command in result.items() if name.split()[0] not in WITHOUT_PATH
    }


@pytest.mark.parametrize("name", verbs())
def test_a_verb_takes_a_path_and_defaults_to_the_current_directory(name: str) -> None:
    path = [item for item in verbs()[name].params if isinstance(item, click.Argument)][-1]

    assert path.name in {"path", "paths"}
    assert "[PATH" in path.make_metavar(click.Context(cli, **cli.context_settings))
    assert not path.required
    assert path.get_default(click.Context(cli, **cli.context_settings)) in {".", "", (".",)}


def test_the_tree_starts_at_the_roots_or_at_a_unit() -> None:
    whole = tidegate("tree", PLATFORM, "-o", "json", "--offline")
    part = tidegate("tree", PLATFORM, "--unit", "ks/metrics", "-o", "json", "--offline")

    roots = [json.loads(line)["name"] for line in whole.stdout.splitlines()]
    assert roots == ["Application/argocd/root", "Kustomization/flux-system/flux-system"]
    assert json.loads(part.stdout)["name"] == "Kustomization/flux-system/metrics"


def test_the_tree_of_a_plain_directory_has_its_objects(tmp_path: Path) -> None:
    write_unit(tmp_path, web=config_map("web"))

    document = json.loads(tidegate("tree", tmp_path, "-o", "json").stdout)

    assert [child["name"] for child in document["children"]] == ["ConfigMap/default/web"]


def test_an_object_is_traced_in_a_path() -> None:
    ran = tidegate("trace", "deployment/collector", PLATFORM, "-o", "json", "--offline")
    bare = tidegate("trace", "deployment", PLATFORM)

    names = [block[0]["value"] for block in json.loads(ran.stdout)["trace"]]
    assert "metrics" in names
    assert bare.returncode == 2


def test_a_journal_is_shown_or_rebuilt_but_not_both() -> None:
    assert tidegate("status", PLATFORM, "--journal", "--rebuild-journal").returncode == 2


def test_an_unknown_code_is_refused_with_the_closest_one() -> None:
    ran = tidegate("rule", "units.unknownn", "-o", "json")

    error = json.loads(ran.stderr)
    assert (ran.returncode, error["code"]) == (2, "usage.rule")
    assert "units.unknown" in error["fix"]


@pytest.mark.parametrize("alias", [("argocd", "app", "list"), ("flux", "get", "ks")])
def test_commands_of_other_tools_are_below_their_name(alias: tuple[str, ...]) -> None:
    assert tidegate(*alias, "--help").returncode == 0
    assert tidegate(*alias[1:]).returncode == 2
