"""`tidegate render`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.completion import complete_path
from tidegate.cli.options import SELECTION, Flags, with_options
from tidegate.cli.output import note, print_document, print_error, print_line
from tidegate.cli.progress import show_progress

if TYPE_CHECKING:
    from tidegate.actions.render import RenderedPart
    from tidegate.errors import TidegateError
    from tidegate.model.finding import Finding
    from tidegate.workspace.rendering.result import RenderResult


@options.command(shows_rendering=True)
@click.argument(
    "paths", nargs=-1, metavar="[PATH|URL]...", default=(".",), shell_complete=complete_path
)
@click.option(
    "--revision",
    default="",
    metavar="REVISION",
    help="Branch, tag, commit, version or version range of a URL.",
)
@click.option(
    "--chart", default="", metavar="NAME", help="Name of a chart; the URL is its Helm repository."
)
@click.option(
    "--name",
    default="",
    metavar="NAME",
    help="Release name of a chart. Default: the name of its directory.",
)
@click.option(
    "-n",
    "--namespace",
    default="default",
    show_default=True,
    metavar="NAMESPACE",
    help="Namespace of a chart.",
)
@with_options(SELECTION)
@options.VALUES
@options.SET
@options.SET_STRING
@options.SET_FILE
@options.KUBE_VERSION
@options.API_VERSIONS
@options.OFFLINE
@options.REPO_MAP
@options.LOAD_ROOT
@click.option("--origins", is_flag=True, help="Print the origin of each object in a comment.")
@options.output_option(["yaml", "json", "names", "units"])
def render(paths: tuple[str, ...], **flags: Unpack[Flags]) -> int:
    """Render each PATH or URL.

    A path is a Helm chart, a Kustomize overlay, a directory of manifests, or an Argo CD or Flux
    repository, of which all units are rendered. A URL is a directory in a Git repository
    (https://host/owner/name//path?ref=main), an OCI artifact (oci://host/name) or, with --chart, a
    Helm repository.

    Values of Secrets and decrypted values are masked. With -o json each line is an object; with
    -o units each line is a unit with its objects and errors.

    \b
    Examples:
      tidegate render clusters/prod
      tidegate render . --unit Application/argocd/web
      tidegate render apps/*/overlays/prod -o names
      tidegate render charts/web -f values-prod.yaml --set image.tag=v2
      tidegate render . --offline --repo-map https://host/acme/base=../base
      tidegate render https://charts.example.com --chart web --revision ^1.2
    """
    progress_line = show_progress(f"rendering {', '.join(paths)}")
    from tidegate.actions.render import render_requests
    from tidegate.cli.requests import load_request, render_settings
    from tidegate.cli.run_async import run_async
    from tidegate.workspace.request import prefer_display_root

    if flags["name"] and len(paths) > 1:
        raise click.BadParameter(
            "one release name cannot be used for several paths", param_hint="--name"
        )
    requests = [load_request(path, flags, check_exists=False) for path in paths]
    results = run_async(render_requests(requests, render_settings(flags)))
    progress_line.clear()
    codes = [0]
    for path, result in zip(paths, results, strict=True):
        prefer_display_root(path)
        codes += [
            _print_unit(
                path, part, result.findings, output=flags["output"], with_origins=flags["origins"]
            )
            for part in result.parts
        ]
        codes.append(options.print_findings(result.findings))
    return max(codes)


def _print_unit(
    path: str,
    unit_result: RenderedPart,
    findings: tuple[Finding, ...],
    *,
    output: str,
    with_origins: bool,
) -> int:
    """Print objects to standard output, the rest to standard error; return the exit code.

    `findings` are printed after all units and not repeated here.
    """
    from tidegate.report.rendered import manifest_texts, unit_json_line
    from tidegate.workspace.rendering.result import RenderFailure

    render_result = unit_result.result
    if output == "units":
        names = (unit_result.unit, unit_result.root)
        errors_by_key = {"errors": unit_result.errors, "notes": unit_result.notes}
        print_document(
            unit_json_line(names, unit_result.objects, errors_by_key, unit_result.findings)
        )
    if isinstance(render_result, RenderFailure):
        for error in (item for item in render_result.errors if not _is_reported(item, findings)):
            print_error(error)
        return max(error.exit_code for error in render_result.errors)
    shown = () if output == "units" else unit_result.objects
    for text in manifest_texts(shown, output_format=output, with_origins=with_origins):
        if output == "names":
            print_line(text)
        else:
            print_document(text, end="")
    if not render_result.documents and not render_result.missing_inputs:
        note(f"`{path}` renders no objects")
    notes = (*render_result.undecrypted, *render_result.mac_errors)
    options.print_warnings(note for note in notes if not _is_reported(note, findings))
    return _print_missing(render_result, findings)


def _print_missing(render_result: RenderResult, findings: tuple[Finding, ...]) -> int:
    """Print why objects or values of a unit are unknown, and return the exit code."""
    missing_inputs = {missing.description: missing for missing in render_result.missing_inputs}
    for missing in missing_inputs.values():
        note(f"incomplete: {missing.description}", severity="warning")
        print_error(missing.error)
    for error in render_result.refusals:
        if not _is_reported(error, findings):
            print_error(error)
    errors = (
        *(missing.error for missing in render_result.missing_inputs),
        *(unknown.error for unknown in render_result.unknown_variables),
        *render_result.refusals,
    )
    return max((error.exit_code for error in errors), default=0)


def _is_reported(error: TidegateError, findings: tuple[Finding, ...]) -> bool:
    """Return whether a finding reports the error, by whatever message."""
    key = (error.code, error.problem)
    return any((finding.code, finding.error_problem) == key for finding in findings)
