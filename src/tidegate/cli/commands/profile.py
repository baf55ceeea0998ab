"""`tidegate profile`."""

from __future__ import annotations

from pathlib import Path

import click

from tidegate.cli.options import EXISTING_FILE
from tidegate.cli.output import note, print_document
from tidegate.cli.progress import show_progress


@click.group()
def profile() -> None:
    """Say how long things take in a simulated cluster.

    \b
    Examples:
      tidegate profile learn dump.json > ours.yaml
      tidegate profile learn --context prod > ours.yaml
    """


@profile.command(short_help="Write a profile with the durations that a cluster has seen.")
@click.argument("file", required=False, type=EXISTING_FILE, default=None)
@click.option("--context", default=None, help="The context of the kubeconfig: read that cluster.")
@click.option("--kubeconfig", default=None, help="The kubeconfig file to use.")
@click.option("--operator-defs", type=EXISTING_FILE, help="Rows for operators of your own.")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", help="How.")
def learn(
    file: Path | None,
    context: str | None,
    kubeconfig: str | None,
    operators: Path | None,
    output: str,
) -> int:
    """Write a profile with the durations that a cluster has seen, for `simulate --profile`.

    FILE is what `kubectl get pods,events,jobs -A -o json` has printed, with custom resources if you
    like; or a live cluster is read. Nothing is written to it.

    \b
    Examples:
      tidegate profile learn dump.json > ours.yaml
      tidegate profile learn --context prod > ours.yaml
      tidegate simulate overlays/prod --profile ours.yaml --duration-range
    """
    if (file is None) == (context is None):
        raise click.UsageError("give a FILE or --context NAME, and not both")
    if kubeconfig is not None and context is None:
        raise click.UsageError("--kubeconfig is for --context")
    progress_line = show_progress(f"reading {file or context}", quiet=output == "json")
    import json

    from tidegate.cli.requests import render_settings
    from tidegate.cli.run_async import run_async
    from tidegate.clusters.session import ClusterTargets
    from tidegate.report.profile import profile_lines
    from tidegate.simulation.learn_profile import learn_from_cluster, learn_from_file

    if file is not None:
        result = learn_from_file(file, operators)
    else:
        target = ClusterTargets(kubeconfig=kubeconfig, context=context)
        result = run_async(learn_from_cluster(target, render_settings({}), operators))
    progress_line.clear()
    is_json = output == "json"
    text = json.dumps(result.document) if is_json else "\n".join(profile_lines(result.document))
    print_document(text)
    for message in result.notes:
        note(message)
    return 0
