"""`tidegate sandbox`."""

from __future__ import annotations

from pathlib import Path

import click

from tidegate.cli import options

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
@click.option("--scenario", type=FILE, help="What goes wrong, and what is there already.")
@click.option("--profile", type=FILE, help="How long things take.")
@click.option("--operators", type=FILE, help="Rows for operators of your own.")
@click.option(
    "--until", default="10m", show_default=True, help="How long to look, in its own time."
)
@click.option("--kind", "kinds", multiple=True, help="Show only this kind; may be repeated.")
@click.option("--seed", default=0, help="Another seed, another run; the same seed, the same run.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How.")
def run(
    files: tuple[Path, ...],
    scenario: Path | None,
    profile: Path | None,
    operators: Path | None,
    until: str,
    kinds: tuple[str, ...],
    seed: int,
    output: str,
) -> None:
    """Apply FILES (or directories) to an empty simulated cluster, and print what happens.

    \b
    Examples:
      tidegate sandbox run deployment.yaml
      tidegate sandbox run manifests/ --scenario slow-database.yaml --until 30m
      tidegate sandbox run manifests/ --kind Job --kind StatefulSet
      tidegate sandbox run manifests/ -o json
    """
    import asyncio

    import msgspec

    from tidegate.flows.play import play
    from tidegate.flows.wiring import Simulation
    from tidegate.report.timeline import as_text, timeline

    end = options.duration(until, "--until")
    simulation = Simulation(scenario=scenario, profile=profile, operators=operators, seed=seed)
    happenings = asyncio.run(play(files, simulation, until=end))
    wanted = {kind.lower() for kind in kinds}
    lines = [
        line
        for line in timeline(happenings)
        if not wanted or line.object.split()[0].lower() in wanted
    ]
    encode = msgspec.json.Encoder().encode
    shown = (encode(line).decode() for line in lines) if output == "json" else as_text(lines)
    for line in shown:
        click.echo(line)
