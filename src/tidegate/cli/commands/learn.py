"""`tidegate simulate learn`."""

from __future__ import annotations

from pathlib import Path

import click

from tidegate.cli import options
from tidegate.cli.options import EXISTING_FILE
from tidegate.cli.output import note, print_document
from tidegate.cli.progress import show_progress


@options.command()
@click.argument("file", required=False, type=EXISTING_FILE, default=None)
@click.option(
    "--context", default=None, metavar="NAME", help="Read the cluster of this kubeconfig context."
)
@click.option("--kubeconfig", default=None, metavar="FILE", help="Path of the kubeconfig file.")
@click.option(
    "--operator-defs", type=EXISTING_FILE, help="File with additional operator definitions."
)
@options.output_option(["yaml", "json"])
def learn(
    file: Path | None,
    context: str | None,
    kubeconfig: str | None,
    operator_defs: Path | None,
    output: str,
) -> int:
    """Write a profile with durations measured in a cluster, for `simulate --profile`.

    FILE is the output of `kubectl get pods,events,jobs -A -o json`, with custom resources if you
    like. With --context, Tidegate reads a live cluster instead and writes nothing to it.

    \b
    Examples:
      tidegate simulate learn dump.json > prod-profile.yaml
      tidegate simulate learn --context prod > prod-profile.yaml
      tidegate simulate overlays/prod --profile prod-profile.yaml --duration-range
    """
    if (file is None) == (context is None):
        raise click.UsageError("give either FILE or --context NAME")
    if kubeconfig is not None and context is None:
        raise click.UsageError("--kubeconfig needs --context")
    progress_line = show_progress(f"reading {file or context}", quiet=output == "json")
    import json

    from tidegate.cli.requests import render_settings
    from tidegate.cli.run_async import run_async
    from tidegate.clusters.session import ClusterTargets
    from tidegate.report.profile import profile_lines
    from tidegate.simulation.learn_profile import learn_from_cluster, learn_from_file

    if file is not None:
        result = learn_from_file(file, operator_defs)
    else:
        target = ClusterTargets(kubeconfig=kubeconfig, context=context)
        result = run_async(learn_from_cluster(target, render_settings({}), operator_defs))
    progress_line.clear()
    is_json = output == "json"
    text = json.dumps(result.document) if is_json else "\n".join(profile_lines(result.document))
    print_document(text)
    for message in result.notes:
        note(message)
    return 0
