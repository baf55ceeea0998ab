"""`tidegate approve`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.options import CLUSTER, UNITS, Flags, with_options
from tidegate.cli.progress import show_progress
from tidegate.cli.unit_kinds import UNIT_KINDS

if TYPE_CHECKING:
    from tidegate.actions.approve import ApprovedUnit

SEPARATORS_OF_IDENTITY = 2
"""Number of slashes in `Kind/namespace/name`."""


@options.command()
@options.PATH
@with_options((UNITS,), CLUSTER, (options.OFFLINE, options.REPO_MAP))
@options.OUTPUT
def approve(**flags: Unpack[Flags]) -> None:
    """Approve units of PATH that wait for approval in a rollout.

    A running rollout continues at once; a stopped one continues when it is started again. The
    approval is for this version of the unit: the next change waits for approval again.

    \b
    Examples:
      tidegate approve --unit shop-prod --context prod
      tidegate approve clusters/prod --unit shop-prod --unit shop-prod-eu
      tidegate approve --unit Application/argocd/shop-prod
    """
    names, flags["units"] = flags["units"], ()
    if not names:
        raise click.UsageError("give --unit UNIT")
    progress_line = show_progress(
        f"looking for {', '.join(names)}", quiet=flags["output"] == "json"
    )
    from tidegate.cli.confirm import print_target
    from tidegate.cli.run_async import run_async

    identities = _find_identities(names, flags)
    approved = run_async(_approve_units(identities, flags))
    progress_line.clear()
    print_target(flags)
    lines = (f"approved {unit_approval.unit}" for unit_approval in approved)
    options.print_result(flags["output"], approved, lines)


def _find_identities(names: tuple[str, ...], flags: Flags) -> list[str]:
    """Return the identities of units. PATH is read only for names that are no identity.

    Units that an ApplicationSet creates during the rollout are not in PATH.
    """
    from tidegate.cli.unit_arguments import find_resources, load_unit_trees, split_unit_argument

    if all(map(_is_identity, names)):
        return [*names]
    unit_trees, identities = load_unit_trees(flags["path"], flags), list[str]()
    for name in names:
        if _is_identity(name):
            identities.append(name)
            continue
        kinds, short_name = split_unit_argument(name, UNIT_KINDS)
        resources = find_resources(unit_trees, kinds, (short_name,))
        unit_names = {resource.id.qualified_name for resource in resources}
        if len(unit_names) > 1:
            raise click.UsageError(f"`{name}` is ambiguous: {', '.join(sorted(unit_names))}")
        identities += unit_names
    return identities


def _is_identity(name: str) -> bool:
    return name.count("/") == SEPARATORS_OF_IDENTITY


async def _approve_units(identities: list[str], flags: Flags) -> list[ApprovedUnit]:
    from tidegate.actions.approve import approve_units
    from tidegate.cli.requests import cluster_targets, render_settings
    from tidegate.clusters.session import open_session

    async with open_session(cluster_targets(flags), render_settings(flags)) as session:
        return await approve_units(identities, session.world, session.targets.contexts)
