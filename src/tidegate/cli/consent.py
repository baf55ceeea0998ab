"""Whom a verb speaks to, said first; and whether somebody agrees to it, where that is real."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import click

from tidegate.cli.asking import target_of
from tidegate.cli.saying import say, say_lines
from tidegate.cli.unit_options import Given
from tidegate.flows.session import name_target

OFFLINE = "none; compared with an empty cluster"


def say_target(told: Given, named: str = "") -> None:
    """The first line for people. `named`: what to call it instead."""
    if told["output"] != "json":
        for name in target_names(told, named):
            say(f"target: {name}")


def target_names(told: Given, named: str = "") -> list[str]:
    """The clusters that are chosen, as people know them; or what to call them instead."""
    return [named] if named else name_target(target_of(told))


def needs_consent(told: Given) -> bool:
    """Whether somebody has to agree. Raises at once where nobody is there to be asked."""
    target = target_of(told)
    if target.simulation is not None or told["yes"] or told.get("dry_run"):
        return False
    name_target(target)  # where there is none, that is what is wrong
    if not sys.stdin.isatty():
        raise click.UsageError(
            "there is no terminal to ask on: add --yes to go on without being asked"
        )
    return True


def agree(shown: Iterable[str], question: str) -> None:
    """Show what would be done, and ask. Raises where the answer is no."""
    for line in shown:
        say_lines(line, err=True)
    if not click.confirm(question, err=True):
        raise click.Abort from KeyboardInterrupt("nothing was changed")
