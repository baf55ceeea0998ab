"""A preview on standard output, and beside it what is not certain."""

from __future__ import annotations

import click

from tidegate.cli import options
from tidegate.flows.preview import Preview, plan_document
from tidegate.report.plan import plan_lines


def show_preview(found: Preview, *, json: bool) -> None:
    """Step by step, or the plan as a document."""
    options.say_notes(found.notes)
    if json:
        click.echo(plan_document(found))
        return
    for line in plan_lines(found.plan, found.differences):
        click.echo(line)
