"""`tidegate flux suspend`, and the commands that it shares with `tidegate flux resume`."""

from __future__ import annotations

from functools import partial
from typing import Unpack

import click

from tidegate.cli import options
from tidegate.cli.command import TidegateCommand
from tidegate.cli.options import CLUSTER, WAIT, Flags, with_options
from tidegate.cli.progress import show_progress
from tidegate.cli.unit_arguments import (
    ALL,
    NAMESPACE_FILTER,
    REPOSITORY,
    SELECTOR,
    find_resources,
    names_argument,
    noun_group,
)
from tidegate.cli.unit_kinds import KINDS_BY_NOUN

NOUN_TITLES = {
    "kustomization": "Kustomizations",
    "helmrelease": "HelmReleases",
    "source": "sources",
}
NOUNS = tuple(NOUN_TITLES)


def suspend_command(noun: str, *, suspends: bool) -> click.Command:
    """Return the command that suspends or resumes the units or sources of a noun."""
    verb = "suspend" if suspends else "resume"
    kinds = KINDS_BY_NOUN[noun]

    @with_options(
        (REPOSITORY, NAMESPACE_FILTER, *SELECTOR, ALL), CLUSTER, (options.OFFLINE, options.REPO_MAP)
    )
    @with_options(() if suspends else WAIT)
    @options.OUTPUT
    def run(names: tuple[str, ...], *, every: bool, **flags: Unpack[Flags]) -> int:
        if sum(map(bool, (names, flags["labels"], every))) != 1:
            raise click.UsageError("give names, -l SELECTOR or --all")
        progress_line = show_progress(f"looking for {noun}", quiet=flags["output"] == "json")
        from tidegate.cli.suspend import suspend_or_resume

        return suspend_or_resume(
            lambda trees: find_resources(
                trees, kinds, names, flags["labels"], flags["namespace_filter"]
            ),
            flags,
            progress_line,
            suspends=suspends,
        )

    summary = f"{verb.capitalize()} {NOUN_TITLES[noun]}."
    return TidegateCommand(
        noun,
        callback=run,
        params=[names_argument(kinds), *reversed(getattr(run, "__click_params__", []))],
        help=f"{summary}\n\n\b\nExamples:\n  tidegate flux {verb} {noun} NAME",
        short_help=summary,
    )


@click.group(cls=noun_group(partial(suspend_command, suspends=True), NOUNS))
def suspend() -> None:
    """Suspend Kustomizations, HelmReleases and sources, like `flux suspend`.

    \b
    Examples:
      tidegate flux suspend kustomization apps
      tidegate flux suspend hr --all --context prod
      tidegate flux suspend source git platform
    """
