"""`tidegate render`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.completing import complete_path
from tidegate.cli.doing import say_first
from tidegate.cli.saying import hand_out, note, say, say_error
from tidegate.cli.unit_options import NARROWING, Given, takes

if TYPE_CHECKING:
    from tidegate.errors import TidegateError
    from tidegate.flows.render import UnitPart
    from tidegate.model.finding import Finding


@click.command()
@click.argument(
    "what", nargs=-1, required=True, metavar="PATH|URL...", shell_complete=complete_path
)
@click.option("--revision", default="", help="A branch, tag, commit, version or range of a URL.")
@click.option("--chart", default="", help="A chart by its name; the URL is its Helm repository.")
@click.option("--name", default="", help="A chart's release name; its directory's if not given.")
@click.option(
    "-n", "--namespace", default="default", show_default=True, help="A chart's namespace."
)
@takes(NARROWING)
@options.values
@options.parameters
@options.string_parameters
@options.file_parameters
@options.kube_version
@options.api_versions
@options.offline
@options.repo_map
@options.root
@click.option("--origins", is_flag=True, help="Say in a comment where each object comes from.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["yaml", "json", "names", "units"]),
    default="yaml",
    help="How.",
)
def render(what: tuple[str, ...], **told: Unpack[Given]) -> int:
    """Show what each PATH or URL renders to.

    It may be a Helm chart, a Kustomize overlay or a directory of manifests, here, in a Git
    repository (https://host/owner/name//path?ref=main), in a registry (oci://host/name), or with
    --chart in a Helm repository. Of a repository of Argo CD's or Flux's, every unit is rendered.

    Values of Secrets, and whatever stood encrypted, are masked. With -o json there is a line for
    each object, with -o units one for each unit, with its objects and what is wrong with it.

    \b
    Examples:
      tidegate render clusters/prod
      tidegate render . --unit Application/argocd/web
      tidegate render apps/*/overlays/prod -o names
      tidegate render charts/web -f values-prod.yaml --set image.tag=v2
      tidegate render overlays/prod --offline --repo-map https://host/acme/base=../base
      tidegate render https://charts.example.com --chart web --revision ^1.2
    """
    doing = say_first(f"rendering {', '.join(what)}")
    from tidegate.cli.asking import pointed_of, setting_of
    from tidegate.cli.running import run
    from tidegate.flows.pointing import stand_again
    from tidegate.flows.render import render_pointed

    if told["name"] and len(what) > 1:
        raise click.BadParameter("it names one release, and there are several", param_hint="--name")
    pointed = [pointed_of(one, told, checks=False) for one in what]
    results = run(render_pointed(pointed, setting_of(told)))
    doing.clear()
    codes = [0]
    for one, made in zip(what, results, strict=True):
        stand_again(one)
        codes += [
            _show(one, part, made.findings, output=told["output"], origins=told["origins"])
            for part in made.parts
        ]
        codes.append(options.say_findings(made.findings))
    return max(codes)


def _show(
    what: str, part: UnitPart, findings: tuple[Finding, ...], *, output: str, origins: bool
) -> int:
    """Objects to standard output, the rest to standard error. Gives the exit code.

    `findings`: what is told behind all units, and not here.
    """
    from tidegate.flows.rendering import Unrendered
    from tidegate.report.rendered import show, unit_line

    result = part.result
    if output == "units":
        names = (part.unit, part.entry)
        said = {"errors": part.errors, "notes": part.notes}
        hand_out(unit_line(names, part.objects, said, part.findings))
    if isinstance(result, Unrendered):
        for error in (one for one in result.errors if not _is_among(one, findings)):
            say_error(error)
        return max(error.exit_code for error in result.errors)
    shown = () if output == "units" else part.objects
    for text in show(shown, form=output, origins=origins):
        if output == "names":
            say(text)
        else:
            hand_out(text, end="")
    if not result.documents and not result.weakened:
        note(f"`{what}` renders to nothing")
    notes = (*result.locked, *result.suspect)
    options.say_notes(one for one in notes if not _is_among(one, findings))
    for one in {one.unknown: one for one in result.weakened}.values():
        note(f"not known: {one.unknown}", severity="warning")
        say_error(one.why)
    return max((one.why.exit_code for one in result.weakened), default=0)


def _is_among(error: TidegateError, findings: tuple[Finding, ...]) -> bool:
    return any(one.code == error.code and error.problem in one.sentence for one in findings)
