"""`tidegate sandbox`."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import click
from click.core import ParameterSource

from tidegate.cli import options
from tidegate.cli.options import NAMESPACE, SIMULATED_CLUSTER, SIMULATION, Flags, with_options
from tidegate.cli.output import close_output, print_lines
from tidegate.cli.progress import show_progress

EXISTING_PATH = click.Path(exists=True, path_type=Path)


@click.group()
def sandbox() -> None:
    """Run a simulated cluster for kubectl and other clients.

    Use `tidegate simulate` to preview the rollout of a repository, `sandbox run` to see what the
    controllers of a cluster do with single files, and `sandbox up` for a cluster that keeps
    running.

    \b
    Examples:
      tidegate sandbox run deployment.yaml
      tidegate sandbox run manifests/ --kind Job --until 30m
      tidegate sandbox up
      tidegate sandbox down
    """


@sandbox.command(short_help="Apply files to an empty simulated cluster and print what happens.")
@click.argument("files", nargs=-1, required=True, type=EXISTING_PATH)
@with_options((NAMESPACE,), SIMULATION)
@options.until_option("10m", "Simulated time to run.")
@click.option(
    "--kind", "kinds", metavar="KIND", multiple=True, help="Print only this kind. Repeatable."
)
@options.OUTPUT
def run(files: tuple[Path, ...], **flags: Unpack[Flags]) -> None:
    """Apply FILES (or directories) to an empty simulated cluster, and print what happens.

    \b
    Examples:
      tidegate sandbox run deployment.yaml
      tidegate sandbox run manifests/ --scenario slow-database.yaml --until 30m
      tidegate sandbox run manifests/ --kind Job --kind StatefulSet
      tidegate sandbox run manifests/ -n shop -o json
    """
    progress_line = show_progress("simulating")
    from tidegate.cli.requests import simulation_config
    from tidegate.cli.run_async import run_async
    from tidegate.report.timeline import format_timeline, timeline_lines
    from tidegate.simulation.apply_files import apply_files

    entries = run_async(
        apply_files(
            files, simulation_config(flags), until=flags["until"], namespace=flags["namespace"]
        )
    )
    progress_line.clear()
    kinds = {kind.lower() for kind in flags["kinds"]}
    lines = [
        line
        for line in timeline_lines(entries)
        if not kinds or line.object.split()[0].lower() in kinds
    ]
    options.print_result(flags["output"], lines, format_timeline(lines))


@sandbox.command(short_help="Start a simulated cluster in the background.")
@click.option(
    "--preload",
    "preload",
    multiple=True,
    type=EXISTING_PATH,
    metavar="PATH",
    help="File or directory of objects to create at the start. Repeatable.",
)
@with_options(SIMULATED_CLUSTER)
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    metavar="FACTOR",
    help="Simulated seconds per real second.",
)
@click.option("--foreground", is_flag=True, help="Run in the foreground until Ctrl-C.")
@options.OUTPUT
def up(**flags: Unpack[Flags]) -> int:
    """Start a simulated cluster in the background and serve its API on this machine.

    It needs no container engine, no root and no network. kubectl, Tidegate and other clients use it
    through its kubeconfig like a real cluster. Only one can run at a time.

    \b
    Examples:
      tidegate sandbox up
      tidegate sandbox up --preload crds/ --speed 10
      export KUBECONFIG=~/.local/state/tidegate/sandbox/kubeconfig
    """
    import os

    from tidegate.clusters.sandboxes import CONTEXT, sandbox_directory
    from tidegate.simulation.daemon import start

    directory = sandbox_directory(os.environ)
    if not flags["foreground"]:
        progress_line = show_progress(
            "starting a simulated cluster", quiet=flags["output"] == "json"
        )
        start_result = start(_explicit_options(), directory)
        progress_line.clear()
        print_lines(start_result.output or start_result.error_output, err=not start_result.output)
        return start_result.code

    from tidegate.cli.requests import simulation_config
    from tidegate.cli.run_async import run_async
    from tidegate.simulation.server import RunningSandbox, run_sandbox, with_given

    def report_address(server: RunningSandbox) -> None:
        addresses = {"address": server.address, "kubeconfig": str(server.kubeconfig)}
        lines = (
            f"simulated cluster at {server.address}, context {CONTEXT}",
            f"export KUBECONFIG={server.kubeconfig}",
        )
        options.print_result(
            flags["output"], [{"state": "up", "context": CONTEXT, **addresses}], lines
        )
        close_output()

    simulation = with_given(simulation_config(flags), flags["preload"])
    run_async(
        run_sandbox(simulation, directory, pace=flags["speed"] or 1.0, on_ready=report_address)
    )
    return 0


def _explicit_options() -> list[str]:
    """Return the options that are on the command line."""
    context, arguments = click.get_current_context(), list[str]()
    for option in context.command.params:
        if context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE:
            value = context.params[option.name or ""]
            for item in value if option.multiple else [value]:
                arguments += [option.opts[-1], str(item)]
    return arguments


@sandbox.command(short_help="Stop the simulated cluster.")
@options.OUTPUT
def down(output: str) -> None:
    """Stop the simulated cluster and discard its objects.

    \b
    Examples:
      tidegate sandbox down
    """
    import os

    from tidegate.cli.run_async import run_async
    from tidegate.clusters.sandboxes import CONTEXT, sandbox_directory
    from tidegate.simulation.daemon import stop

    run_async(stop(sandbox_directory(os.environ)))
    document = {"state": "stopped", "context": CONTEXT}
    options.print_result(output, [document], ["stopped the simulated cluster"])
