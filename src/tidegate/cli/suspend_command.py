"""`tidegate suspend`, and the subcommands that it shares with `tidegate resume`."""

from __future__ import annotations

from typing import Unpack

import click

from tidegate.cli import options
from tidegate.cli.options import CLUSTER, Flags, with_options
from tidegate.cli.unit_arguments import (
    ALL,
    KINDS_BY_NOUN,
    NAMESPACE_FILTER,
    REPOSITORY,
    SELECTOR,
    names_argument,
)

WAIT_OPTIONS = (
    click.option(
        "--wait/--no-wait",
        default=None,
        help="Wait until a live controller has reconciled it. The default for a single name.",
    ),
    options.TIMEOUT,
)
NOUN_TITLES = {
    "application": "Applications",
    "helmrelease": "HelmReleases",
    "kustomization": "Kustomizations",
    "source": "sources",
}


def suspend_command(noun: str, *, suspends: bool) -> click.Command:
    """Return the command that suspends or resumes units of a noun."""
    command_name = "suspend" if suspends else "resume"
    short_noun = {"kustomization": "ks", "helmrelease": "hr", "application": "app"}.get(noun, noun)

    @with_options(
        (REPOSITORY, NAMESPACE_FILTER, *SELECTOR, ALL), CLUSTER, (options.OFFLINE, options.REPO_MAP)
    )
    @with_options(() if suspends else WAIT_OPTIONS)
    @options.OUTPUT
    def run(names: tuple[str, ...], *, every: bool, **flags: Unpack[Flags]) -> int:
        from tidegate.cli.suspend import suspend_or_resume  # noqa: PLC0415 - at run time

        return suspend_or_resume(noun, names, flags, select_all=every, suspends=suspends)

    help_prefix = "Have nothing done to" if suspends else "Have somebody at work again on"
    return click.Command(
        noun,
        callback=run,
        params=[
            names_argument(KINDS_BY_NOUN[noun]),
            *reversed(getattr(run, "__click_params__", [])),
        ],
        help=(
            f"{help_prefix} {NOUN_TITLES[noun]}.\n\n\b\nExamples:\n  tidegate {command_name}"
            f" {short_noun} NAME"
        ),
        short_help=f"{help_prefix} {NOUN_TITLES[noun]}.",
    )
