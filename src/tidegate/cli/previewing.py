"""A preview on standard output, and beside it what is not certain."""

from __future__ import annotations

import click

from tidegate.cli import options
from tidegate.flows.preview import Preview, Pruning
from tidegate.plan.wire import to_json
from tidegate.report.plan import plan_lines


def pruning_of(*, prunes: bool, consents: bool) -> Pruning:
    """What `--prune` and `--confirm` come to."""
    if not prunes:
        return Pruning.NONE
    return Pruning.CONFIRMED if consents else Pruning.ASKING


def show_preview(found: Preview, *, json: bool) -> None:
    """Step by step, or the plan as a document."""
    options.say_notes(found.notes)
    if json:
        click.echo(to_json(found.plan))
        return
    for line in plan_lines(found.plan, found.differences):
        click.echo(line)
