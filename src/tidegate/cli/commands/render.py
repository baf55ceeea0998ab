"""`tidegate render`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tidegate.cli import options

if TYPE_CHECKING:
    from tidegate.flows.pointing import Words
    from tidegate.flows.rendering import Rendered, Unrendered


@click.command()
@click.argument("what", nargs=-1, required=True, metavar="PATH|URL...")
@click.option("--revision", default="", help="A branch, tag, commit, version or range of a URL.")
@click.option("--chart", default="", help="A chart by its name; the URL is its Helm repository.")
@click.option("--name", default="", help="A chart's release name; its directory's if not given.")
@click.option("--namespace", default="default", show_default=True, help="A chart's namespace.")
@options.values
@click.option("--set", "parameters", multiple=True, help="A value by name, NAME=VALUE.")
@options.kube_version
@options.api_versions
@options.offline
@options.repo_map
@click.option("--origins", is_flag=True, help="Say in a comment where each object comes from.")
@click.option(
    "-o", "--output", type=click.Choice(["yaml", "json", "names"]), default="yaml", help="How."
)
def render(
    what: tuple[str, ...],
    revision: str,
    chart: str,
    name: str,
    namespace: str,
    values: tuple[str, ...],
    parameters: tuple[str, ...],
    kube_version: str,
    api_versions: tuple[str, ...],
    offline: bool,  # noqa: FBT001 - click hands over what is on the command line
    maps: tuple[str, ...],
    origins: bool,  # noqa: FBT001
    output: str,
) -> int:
    """Show what each PATH or URL renders to.

    It may be a Helm chart, a Kustomize overlay or a directory of manifests, here, in a Git
    repository (https://host/owner/name//path?ref=main), in a registry (oci://host/name), or with
    --chart in a Helm repository.

    Values of Secrets, and whatever stood encrypted, are masked.

    \b
    Examples:
      tidegate render clusters/prod
      tidegate render apps/*/overlays/prod -o names
      tidegate render charts/web -f values-prod.yaml --set image.tag=v2
      tidegate render overlays/prod --offline --repo-map https://host/acme/base=../base
      tidegate render https://charts.example.com --chart web --revision ^1.2
    """
    import asyncio

    from tidegate.flows.render import own_setting, render_paths

    if name and len(what) > 1:
        raise click.BadParameter("it names one release, and there are several", param_hint="--name")
    words: Words = {
        "revision": revision,
        "chart": chart,
        "name": name,
        "namespace": namespace,
        "values": values,
        "parameters": tuple(options.pair(parameter) for parameter in parameters),
        "kube_version": kube_version,
        "api_versions": api_versions,
    }
    setting = own_setting(offline=offline, maps=maps)
    results = asyncio.run(render_paths(what, words, setting))
    return max(
        _show(one, result, output=output, origins=origins)
        for one, result in zip(what, results, strict=True)
    )


def _show(what: str, result: Rendered | Unrendered, *, output: str, origins: bool) -> int:
    """Objects to standard output, the rest to standard error. Gives the exit code."""
    from tidegate.flows.rendering import Unrendered
    from tidegate.report.rendered import show, talk

    if isinstance(result, Unrendered):
        for error in result.errors:
            click.echo(str(error), err=True)
        return max(error.exit_code for error in result.errors)
    for text in show(result.documents, result.hidden, form=output, origins=origins):
        click.echo(text, nl=False)
    if not result.documents and not result.weakened:
        click.echo(f"`{what}` renders to nothing", err=True)
    unknown = {one.unknown: one.why for one in result.weakened}
    for text in talk(notes=(*result.locked, *result.suspect), unknown=unknown):
        click.echo(text, err=True)
    return max((error.exit_code for error in unknown.values()), default=0)
