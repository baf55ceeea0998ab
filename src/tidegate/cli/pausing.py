"""`suspend` and `resume`, for each noun that they take."""

from __future__ import annotations

from typing import Unpack

import click

from tidegate.cli import options
from tidegate.cli.naming import ALL, HOME, LABELS, PLACE, naming_argument
from tidegate.cli.nouns import NOUNS
from tidegate.cli.unit_options import CLUSTER, Given, takes

WAITING = (
    click.option(
        "--wait/--no-wait",
        default=None,
        help="Wait until a live controller has reconciled it. The default for a single name.",
    ),
    options.timeout,
)
TITLES = {
    "application": "Applications",
    "helmrelease": "HelmReleases",
    "kustomization": "Kustomizations",
    "source": "sources",
}


def pausing(noun: str, *, suspends: bool) -> click.Command:
    """The command that suspends or resumes what is called by a noun."""
    verb = "suspend" if suspends else "resume"
    short = {"kustomization": "ks", "helmrelease": "hr", "application": "app"}.get(noun, noun)

    @takes((PLACE, HOME, *LABELS, ALL), CLUSTER, (options.offline, options.repo_map))
    @takes(() if suspends else WAITING)
    @options.text_or_json
    def run(names: tuple[str, ...], *, every: bool, **told: Unpack[Given]) -> int:
        from tidegate.cli.suspending import pause  # noqa: PLC0415 - only when a verb runs

        return pause(noun, names, told, every=every, suspends=suspends)

    head = "Have nothing done to" if suspends else "Have somebody at work again on"
    return click.Command(
        noun,
        callback=run,
        params=[
            naming_argument(NOUNS[noun]),
            *reversed(getattr(run, "__click_params__", [])),
        ],
        help=f"{head} {TITLES[noun]}.\n\n\b\nExamples:\n  tidegate {verb} {short} NAME",
        short_help=f"{head} {TITLES[noun]}.",
    )
