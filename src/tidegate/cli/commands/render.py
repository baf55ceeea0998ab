"""`tidegate render`."""

from __future__ import annotations

from pathlib import Path

import click

DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("path", type=DIRECTORY)
@click.option(
    "--name", default="", help="A chart's release name; the directory's name if not given."
)
@click.option("--namespace", default="default", show_default=True, help="A chart's namespace.")
@click.option("-f", "--values", multiple=True, type=FILE, help="A file of values; may be repeated.")
@click.option("--set", "parameters", multiple=True, help="A value by name, NAME=VALUE.")
@click.option("--origins", is_flag=True, help="Say in a comment where each object comes from.")
@click.option(
    "-o", "--output", type=click.Choice(["yaml", "json", "names"]), default="yaml", help="How."
)
def render(
    path: Path,
    name: str,
    namespace: str,
    values: tuple[Path, ...],
    parameters: tuple[str, ...],
    origins: bool,  # noqa: FBT001 - click hands over what is on the command line
    output: str,
) -> None:
    """Show what PATH renders to: a Helm chart, a Kustomize overlay, or a directory of manifests.

    Values of Secrets, and whatever stood encrypted, are masked.

    \b
    Examples:
      tidegate render clusters/prod
      tidegate render charts/web -f values-prod.yaml --set image.tag=v2
      tidegate render overlays/prod -o names
    """
    import asyncio

    from tidegate.flows.render import Wanted, render_path
    from tidegate.report.rendered import show

    wanted = Wanted(
        path=path,
        name=name,
        namespace=namespace,
        values=values,
        parameters=tuple(_pair(parameter) for parameter in parameters),
    )
    rendered = asyncio.run(render_path(wanted))
    for text in show(rendered.documents, rendered.hidden, form=output, origins=origins):
        click.echo(text, nl=False)
    if not rendered.documents:
        click.echo(f"`{path}` renders to nothing", err=True)
    for locked in rendered.locked:
        click.echo(str(locked), err=True)


def _pair(parameter: str) -> tuple[str, str]:
    name, sign, value = parameter.partition("=")
    if not sign or not name:
        raise click.BadParameter(f"`{parameter}` is not NAME=VALUE", param_hint="--set")
    return name, value
