"""`tidegate get`: units and sources of Flux by the verbs of `flux get`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.doing import say_first
from tidegate.cli.naming import LABELS, PLACE
from tidegate.cli.unit_options import CLUSTER, HEALTH, Given, takes
from tidegate.cli.window import room_on

if TYPE_CHECKING:
    from tidegate.flows.entering import Found
    from tidegate.flows.session import Session
    from tidegate.flows.standing import UnitStanding
    from tidegate.model.finding import Finding
    from tidegate.report.reconciled import ReconciledRow

SOURCES = ("GitRepository", "OCIRepository", "HelmRepository", "HelmChart", "Bucket")
KINDS = {
    "kustomizations": ("Kustomization",),
    "helmreleases": ("HelmRelease",),
    "sources": SOURCES,
    "all": (*SOURCES, "Kustomization", "HelmRelease"),
}
ALIASES = {
    "kustomization": "kustomizations",
    "ks": "kustomizations",
    "helmrelease": "helmreleases",
    "hr": "helmreleases",
    "source": "sources",
}


@click.command()
@click.argument("which", metavar="kustomizations|helmreleases|sources|all")
@click.argument("called", metavar="[NAME]", required=False, default="")
@takes((PLACE, *LABELS), CLUSTER, HEALTH)
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Of all namespaces.")
@click.option(
    "-n", "--namespace", "home", default="flux-system", show_default=True, help="Of this one."
)
@options.offline
@options.repo_map
@options.text_or_json
def get(which: str, called: str, **told: Unpack[Given]) -> int:
    """Show Kustomizations, HelmReleases and sources: what was rolled out, and how that went.

    `ks`, `hr` and the singular are taken, too.

    \b
    Examples:
      tidegate get kustomizations
      tidegate get ks apps -n flux-system
      tidegate get all -A -o json
    """
    from tidegate.report.reconciled import reconciled_document, reconciled_lines

    noun = ALIASES.get(which, which)
    if noun not in KINDS:
        known = ", ".join(f"`{one}`" for one in KINDS)
        raise click.UsageError(f"`{which}` is none of {known}")
    read, findings = _read(noun, called, told)
    rows = [row for row in read if _is_meant(row, told)]
    if not rows and told["output"] != "json":
        where = "any" if told["everywhere"] else f'"{told["home"]}"'
        raise click.ClickException(f"no {noun} found in {where} namespace")
    lines = reconciled_lines(rows, everywhere=told["everywhere"], room=room_on(sys.stdout))
    options.show(told["output"], map(reconciled_document, rows), lines)
    return options.say_findings(findings)


def _is_meant(row: ReconciledRow, told: Given) -> bool:
    return told["everywhere"] or row.namespace == told["home"]


def _read(noun: str, called: str, told: Given) -> tuple[list[ReconciledRow], tuple[Finding, ...]]:
    """Those that are meant, compared with what lives, and what was found on the way."""
    doing = say_first(f"looking at {noun}", quiet=told["output"] == "json")
    from tidegate.cli.asking import in_found, pointed_of
    from tidegate.cli.naming import find_families, name_units
    from tidegate.flows.standing import read_bodies, read_selector, read_standings
    from tidegate.report.reconciled import ReconciledRow

    kinds, place = KINDS[noun], told["place"]
    units = [kind for kind in kinds if kind not in SOURCES]
    names = (called,) if called and noun != "all" else ()
    families = find_families(place, told)
    if units and noun != "all":
        told["units"] = name_units(families, names, told["labels"], units)

    async def ask(session: Session, found: Found) -> tuple[list[ReconciledRow], Found]:
        bodies = await read_bodies(families, [one for one in kinds if one in SOURCES], session)
        rows = [ReconciledRow(own, live) for own, live in bodies]
        standings = await read_standings(found, families, session) if units else []
        wanted = told.get("units", ())
        chosen = (one for one in standings if one.unit.id.kind in units)
        rows += [_row(one) for one in chosen if not wanted or str(one.unit.id) in wanted]
        return rows, found

    rows, found = in_found(pointed_of(place, told), told, ask)
    doing.clear()
    selector = read_selector(told["labels"])
    fitting = (row for row in rows if all(each.holds(row.labels) for each in selector))
    return [
        row for row in fitting if called in {"", row.name, f"{row.namespace}/{row.name}"}
    ], found.findings


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
