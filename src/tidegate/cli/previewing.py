"""A preview on standard output, and beside it what is not certain."""

from __future__ import annotations

import os
import sys

import msgspec

from tidegate.cli import options
from tidegate.cli.consent import say_target, target_names
from tidegate.cli.saying import hand_out, say
from tidegate.cli.terminal import Outlet, ability_of
from tidegate.cli.unit_options import Given
from tidegate.flows.entering import Found
from tidegate.flows.preview import Preview
from tidegate.flows.weakness import weakness_of
from tidegate.report.places import seen_text
from tidegate.report.plan import plan_rows
from tidegate.report.plan_document import plan_out
from tidegate.report.rollout.rows import plain


def show_found(found: Found, previews: list[Preview], told: Given, target: str = "") -> int:
    """Each plan, step by step or as a document; then what was found. Gives the exit code.

    `target`: what the clusters are called, where that is not what they are.
    """
    say_target(told, target)
    json = told["output"] == "json"
    weakness = weakness_of(found.members, found.findings)
    for family, one in zip(found.families, previews, strict=False):
        options.say_notes(one.notes)
        if json:
            named = target_names(told, target)
            document = plan_out(one.plan, one.differences, one.refused, named, one.unknown)
            hand_out(msgspec.json.encode(document).decode())
            continue
        if len(previews) > 1:
            say(f"{family.entry}, from {seen_text(family.members[0].unit.where)}")
        _show_plan(one, weakened=bool(weakness))
    more = (finding for one in previews for finding in one.findings)
    return options.say_findings((*found.findings, *more, *weakness))


def _show_plan(one: Preview, *, weakened: bool) -> None:
    """In colours and with signs where somebody looks at it."""
    ability = ability_of(sys.stdout, os.environ)
    counts = (one.refused, len(one.unknown))
    rows = plan_rows(one.plan, one.differences, *counts, weakened=weakened, signs=ability.live)
    if ability.live:
        Outlet(sys.stdout).write_rows(rows, colours=ability.colours)
        return
    for row in rows:
        say(plain(row))
