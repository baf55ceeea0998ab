"""`tidegate get`: units and sources of Flux by the verbs of `flux get`."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.completing import complete_noun, complete_of
from tidegate.cli.doing import say_first
from tidegate.cli.naming import LABELS, PLACE
from tidegate.cli.unit_options import CHANGING, CLUSTER, HEALTH, Given, takes
from tidegate.cli.window import room_on
from tidegate.errors import WordsError

if TYPE_CHECKING:
    from tidegate.flows.entering import Found
    from tidegate.flows.session import Session
    from tidegate.flows.standing import UnitStanding
    from tidegate.model.finding import Finding
    from tidegate.report.reconciled import ReconciledRow

    Reader = Callable[[Session, Found], Awaitable[list[ReconciledRow]]]
    Show = Callable[[list[ReconciledRow]], tuple[Iterable[object], Iterable[str]]]

SOURCES = ("GitRepository", "OCIRepository", "HelmRepository", "HelmChart", "Bucket")
KINDS = {
    "kustomizations": ("Kustomization",),
    "helmreleases": ("HelmRelease",),
    "sources": SOURCES,
    "gitrepositories": ("GitRepository",),
    "all": (*SOURCES, "Kustomization", "HelmRelease"),
}
ALIASES = {
    "kustomization": "kustomizations",
    "ks": "kustomizations",
    "helmrelease": "helmreleases",
    "hr": "helmreleases",
    "source": "sources",
    "gitrepo": "gitrepositories",
    "gitrepository": "gitrepositories",
}


@click.command()
@click.argument(
    "which",
    metavar="kustomizations|helmreleases|sources|all",
    shell_complete=complete_noun([*KINDS]),
)
@click.argument(
    "called",
    metavar="[NAME]",
    required=False,
    default="",
    shell_complete=complete_of(lambda which: KINDS.get(ALIASES.get(which, which), ())),
)
@takes((PLACE, *LABELS), CLUSTER, HEALTH)
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Of all namespaces.")
@click.option(
    "-n", "--namespace", "home", default="flux-system", show_default=True, help="Of this one."
)
@options.offline
@options.repo_map
@takes(CHANGING)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "wide", "json"]),
    default="text",
    help="How. wide: with the source, and nothing cut.",
)
def get(which: str, called: str, **told: Unpack[Given]) -> int:
    """Show Kustomizations, HelmReleases and sources: what was rolled out, and how that went.

    `ks`, `hr`, `gitrepo` and the singular are taken, too.

    \b
    Examples:
      tidegate get kustomizations
      tidegate get ks apps -n flux-system
      tidegate get ks -A -o wide
      tidegate get all -A -o json
      tidegate get ks --watch
    """
    from tidegate.report.reconciled import reconciled_document, reconciled_lines

    noun = ALIASES.get(which, which)
    if noun not in KINDS:
        raise click.UsageError(_no_noun(which))
    reader = _reader(noun, called, told)

    def show(rows: list[ReconciledRow]) -> tuple[Iterable[object], Iterable[str]]:
        wide, everywhere = told["output"] == "wide", told["everywhere"]
        room = room_on(sys.stdout)
        lines = reconciled_lines(rows, everywhere=everywhere, wide=wide, room=room)
        return map(reconciled_document, rows), lines

    if told["watch"]:
        return _watch(reader, told, show)
    rows, findings = _read(reader, noun, told)
    if not rows and told["output"] != "json":
        where = "any" if told["everywhere"] else f'"{told["home"]}"'
        raise WordsError("words.unit", f"no {noun} found in {where} namespace")
    options.show(told["output"], *show(rows))
    return options.say_findings(findings)


def _no_noun(word: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, [*KINDS, *ALIASES], n=1)
    known = ", ".join(f"`{one}`" for one in KINDS)
    return f"`{word}` is none of {known}{f': did you mean `{near[0]}`?' if near else ''}"


def _watch(reader: Reader, told: Given, show: Show) -> int:
    """Show them again whenever something of them has changed."""
    from tidegate.cli.watching import Told, watch

    async def ask(session: Session, found: Found) -> Told:
        return show(await reader(session, found))

    return watch(told, ask)


def _read(
    reader: Reader, noun: str, told: Given
) -> tuple[list[ReconciledRow], tuple[Finding, ...]]:
    """Those that are meant, and what was found on the way."""
    doing = say_first(f"looking at {noun}", quiet=told["output"] == "json")
    from tidegate.cli.asking import in_found, pointed_of
    from tidegate.flows.weakness import findings_of

    async def ask(session: Session, found: Found) -> tuple[list[ReconciledRow], Found]:
        return await reader(session, found), found

    rows, found = in_found(pointed_of(told["place"], told), told, ask)
    doing.clear()
    return rows, findings_of(found)


def _reader(noun: str, called: str, told: Given) -> Reader:
    """Reads those that are meant, compared with what lives then."""
    from tidegate.cli.naming import find_families, name_units
    from tidegate.flows.standing import read_bodies, read_selector, read_standings
    from tidegate.report.reconciled import ReconciledRow

    kinds, place = KINDS[noun], told["place"]
    units = [kind for kind in kinds if kind not in SOURCES]
    names = (called,) if called and noun != "all" else ()
    families = find_families(place, told)
    if units and noun != "all":
        told["units"] = name_units(families, names, told["labels"], units)
    selector = read_selector(told["labels"])

    def is_meant(row: ReconciledRow) -> bool:
        is_here = told["everywhere"] or row.namespace == told["home"]
        is_called = called in {"", row.name, f"{row.namespace}/{row.name}"}
        return is_here and is_called and all(each.holds(row.labels) for each in selector)

    async def read(session: Session, found: Found) -> list[ReconciledRow]:
        sources = [one for one in kinds if one in SOURCES]
        bodies = await read_bodies(families, sources, session, found.scan)
        rows = [ReconciledRow(own, live) for own, live in bodies]
        standings = await read_standings(found, families, session) if units else []
        wanted = told.get("units", ())
        chosen = (one for one in standings if one.unit.id.kind in units)
        rows += [_row(one) for one in chosen if not wanted or str(one.unit.id) in wanted]
        return [row for row in rows if is_meant(row)]

    return read


def _row(one: UnitStanding) -> ReconciledRow:
    from tidegate.model.verdict import Health
    from tidegate.report.reconciled import ReconciledRow
    from tidegate.report.rollout.names import count

    off = sum(not each.is_synced for each in one.objects)
    is_well = not off and one.verdict.health is Health.HEALTHY
    if off:
        stands = f"{off} of {count(len(one.objects), 'object')} not as Git has it"
    elif is_well:
        stands = f"{count(len(one.objects), 'object')} as Git has it, and healthy"
    else:
        stands = f"{one.verdict.health}: {one.verdict.sentence}"
    return ReconciledRow(one.own, one.live, stands, is_well)
