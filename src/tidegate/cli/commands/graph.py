"""`tidegate graph`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.completing import complete_path
from tidegate.cli.doing import say_first
from tidegate.cli.saying import hand_out, say
from tidegate.cli.unit_options import HEALTH, NARROWING, SIMULATION, UNIT, Given, takes
from tidegate.report.places import seen_text

if TYPE_CHECKING:
    from tidegate.report.graph.picture import GraphStory

FORMS = ["text", "mermaid", "dot", "json", "svg", "html"]


@click.command()
@click.argument("what", metavar="[PATH]", default=".", shell_complete=complete_path)
@click.option("--critical-path", is_flag=True, help="Show the steps that decide how long it takes.")
@click.option("--why", nargs=2, metavar="A B", default=None, help="Show why A waits for B.")
@takes(NARROWING, UNIT, SIMULATION, HEALTH)
@click.option(
    "-o", "--output", type=click.Choice(FORMS), default="text", show_default=True, help="How."
)
def graph(what: str, **told: Unpack[Given]) -> int:
    """Show who waits for whom in PATH, what nobody brings, and what waits for itself.

    PATH is a repository of Argo CD's or Flux's, or of both, a directory of manifests, a Helm chart
    or a Kustomize overlay. Edges are declared (waves, dependsOn, annotations) or read from what
    objects name. No cluster is asked. With --unit the whole is read, and this part of it shown.

    \b
    Examples:
      tidegate graph
      tidegate graph clusters/prod -o html > graph.html
      tidegate graph . --why Job/shop/migrate StatefulSet/shop/db
      tidegate graph . --critical-path --unit apps
    """
    output = told["output"]
    doing = say_first(f"reading {what}", quiet=output != "text")
    from msgspec.structs import replace

    from tidegate.cli.asking import in_found, pointed_of
    from tidegate.flows.graph import GraphQuestion, graph_stories
    from tidegate.flows.weakness import findings_of

    told["sandbox"] = told["still"] = True
    question = GraphQuestion(
        units=told["units"], critical=told["critical_path"], why=told["why"] or None
    )
    pointed = replace(pointed_of(what, told), units=())
    found, stories = in_found(pointed, told, partial(graph_stories, question=question))
    doing.clear()
    for family, (graphed, story) in zip(found.families, stories, strict=False):
        options.say_notes(graphed.planned.notes)
        if output == "text" and len(stories) > 1:
            say(f"{family.entry}, from {seen_text(family.members[0].unit.where)}")
        for line in _lines(output, story):
            (say if output == "text" else hand_out)(line)
    more = (finding for graphed, _ in stories for finding in graphed.planned.findings)
    return options.say_findings((*findings_of(found), *more))


def _lines(output: str, story: GraphStory) -> Iterator[str]:
    """The story in the form that is asked for."""
    import msgspec

    from tidegate.report.graph.diagrams import dot_lines, mermaid_lines
    from tidegate.report.graph.document import graph_document
    from tidegate.report.graph.drawing import svg_lines
    from tidegate.report.graph.page import html_lines
    from tidegate.report.graph.picture import make_picture
    from tidegate.report.graph.words import graph_lines

    match output:
        case "json":
            yield msgspec.json.encode(graph_document(story)).decode()
        case "mermaid":
            yield from mermaid_lines(make_picture(story))
        case "dot":
            yield from dot_lines(make_picture(story))
        case "svg":
            yield from svg_lines(make_picture(story))
        case "html":
            yield from html_lines(story, make_picture(story))
        case _:
            yield from graph_lines(story)
