"""`tidegate sandbox`."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import click

from tidegate.cli import options
from tidegate.cli.unit_options import SIMULATION, Given, takes

FILE = click.Path(exists=True, path_type=Path)


@click.group()
def sandbox() -> None:
    """Try things on a simulated cluster.

    \b
    Examples:
      tidegate sandbox run deployment.yaml
      tidegate sandbox run manifests/ --kind Job --until 30m
    """


@sandbox.command(short_help="Apply files to an empty cluster, and print what happens.")
@click.argument("files", nargs=-1, required=True, type=FILE)
@takes(SIMULATION)
@options.until("10m", "How long to look, in its own time.")
@click.option("--kind", "kinds", multiple=True, help="Show only this kind; may be repeated.")
@options.text_or_json
def run(files: tuple[Path, ...], **told: Unpack[Given]) -> None:
    """Apply FILES (or directories) to an empty simulated cluster, and print what happens.

    \b
    Examples:
      tidegate sandbox run deployment.yaml
      tidegate sandbox run manifests/ --scenario slow-database.yaml --until 30m
      tidegate sandbox run manifests/ --kind Job --kind StatefulSet
      tidegate sandbox run manifests/ -o json
    """
    from tidegate.cli.asking import simulation_of
    from tidegate.cli.running import run
    from tidegate.flows.play import play
    from tidegate.report.timeline import as_text, timeline

    happenings = run(play(files, simulation_of(told), until=told["until"]))
    wanted = {kind.lower() for kind in told["kinds"]}
    lines = [
        line
        for line in timeline(happenings)
        if not wanted or line.object.split()[0].lower() in wanted
    ]
    options.show(told["output"], lines, as_text(lines))
