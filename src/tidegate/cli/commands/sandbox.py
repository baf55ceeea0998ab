"""`tidegate sandbox`."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import click
from click.core import ParameterSource

from tidegate.cli import options
from tidegate.cli.doing import say_first
from tidegate.cli.saying import close_output, say_lines
from tidegate.cli.unit_options import FURNISHING, NAMESPACE, SIMULATION, Given, takes

FILE = click.Path(exists=True, path_type=Path)


@click.group()
def sandbox() -> None:
    """Try things on a simulated cluster.

    \b
    Examples:
      tidegate sandbox run deployment.yaml
      tidegate sandbox run manifests/ --kind Job --until 30m
      tidegate sandbox up
      tidegate sandbox down
    """


@sandbox.command(short_help="Apply files to an empty cluster, and print what happens.")
@click.argument("files", nargs=-1, required=True, type=FILE)
@takes((NAMESPACE,), SIMULATION)
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
      tidegate sandbox run manifests/ -n shop -o json
    """
    doing = say_first("playing")
    from tidegate.cli.asking import simulation_of
    from tidegate.cli.running import run
    from tidegate.flows.play import play
    from tidegate.report.timeline import as_text, timeline

    happenings = run(play(files, simulation_of(told), until=told["until"], home=told["namespace"]))
    doing.clear()
    wanted = {kind.lower() for kind in told["kinds"]}
    lines = [
        line
        for line in timeline(happenings)
        if not wanted or line.object.split()[0].lower() in wanted
    ]
    options.show(told["output"], lines, as_text(lines))


@sandbox.command(short_help="Start a simulated cluster that stays, for kubectl and others.")
@click.option(
    "--given",
    "given",
    multiple=True,
    type=FILE,
    metavar="PATH",
    help="A file or directory of objects that are there from the beginning; may be repeated.",
)
@takes(FURNISHING)
@click.option(
    "--pace",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="Simulated seconds in one real second.",
)
@click.option("--foreground", is_flag=True, help="Stay, until Ctrl-C ends it.")
@options.text_or_json
def up(**told: Unpack[Given]) -> int:
    """Start a simulated cluster that stays, and serve its API on this machine.

    It needs no container engine, no root and no network. Its kubeconfig is its own; kubectl,
    tidegate and any other client use it as they would a real one. One can be up at a time.

    \b
    Examples:
      tidegate sandbox up
      tidegate sandbox up --given crds/ --pace 10
      export KUBECONFIG=~/.local/state/tidegate/sandbox/kubeconfig
    """
    import os

    from tidegate.flows.sandbox_home import CONTEXT, home_of, start

    home = home_of(os.environ)
    if not told["foreground"]:
        doing = say_first("starting a simulated cluster", quiet=told["output"] == "json")
        started = start(_written(), home)
        doing.clear()
        say_lines(started.said or started.complaint, err=not started.said)
        return started.code

    from tidegate.cli.asking import simulation_of
    from tidegate.cli.running import run
    from tidegate.flows.sandbox_up import SandboxUp, stand, with_given

    def tell(standing: SandboxUp) -> None:
        place = {"address": standing.address, "kubeconfig": str(standing.kubeconfig)}
        lines = (
            f"simulated cluster at {standing.address}, context {CONTEXT}",
            f"export KUBECONFIG={standing.kubeconfig}",
        )
        options.show(told["output"], [{"state": "up", "context": CONTEXT, **place}], lines)
        close_output()

    simulation = with_given(simulation_of(told), told["given"])
    run(stand(simulation, home, pace=told["pace"] or 1.0, tell=tell))
    return 0


def _written() -> list[str]:
    """The options as somebody wrote them."""
    context, words = click.get_current_context(), list[str]()
    for option in context.command.params:
        if context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE:
            value = context.params[option.name or ""]
            for one in value if option.multiple else [value]:
                words += [option.opts[-1], str(one)]
    return words


@sandbox.command(short_help="End the simulated cluster that is up.")
@options.text_or_json
def down(output: str) -> None:
    """End the simulated cluster that is up. What was in it is gone.

    \b
    Examples:
      tidegate sandbox down
    """
    import os

    from tidegate.cli.running import run
    from tidegate.flows.sandbox_home import CONTEXT, end, home_of

    run(end(home_of(os.environ)))
    ended = {"state": "ended", "context": CONTEXT}
    options.show(output, [ended], ["the simulated cluster has ended"])
