"""Target clusters of a command, and confirmation by the user."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import click

from tidegate.cli.options import Flags
from tidegate.cli.output import print_line, print_lines
from tidegate.cli.requests import cluster_targets
from tidegate.clusters.session import describe_targets

EMPTY_CLUSTER_TARGET = "none; compared with an empty cluster"


def print_target(flags: Flags, label: str = "") -> None:
    """Print the target clusters for people. `label` replaces their names."""
    if flags["output"] != "json":
        for name in target_names(flags, label):
            print_line(f"target: {name}")


def target_names(flags: Flags, label: str = "") -> list[str]:
    """Return the display names of the selected clusters, or `label` instead."""
    return [label] if label else describe_targets(cluster_targets(flags))


def needs_confirmation(flags: Flags) -> bool:
    """Return whether the user has to confirm. Raises if there is no terminal to ask on."""
    target = cluster_targets(flags)
    if target.simulation is not None or flags["yes"] or flags.get("dry_run"):
        return False
    describe_targets(target)  # raises if no cluster is configured
    if not sys.stdin.isatty():
        raise click.UsageError(
            "standard input is not a terminal: add --yes to skip the confirmation"
        )
    return True


def confirm(lines: Iterable[str], question: str) -> None:
    """Print what would be done, and ask. Raises if the user declines."""
    for line in lines:
        print_lines(line, err=True)
    if not click.confirm(question, err=True):
        raise click.Abort from KeyboardInterrupt("nothing was changed")
