"""`tidegate verify`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Unpack

import click

from tidegate.cli import options
from tidegate.cli.completing import complete_path
from tidegate.cli.doing import say_first
from tidegate.cli.saying import note
from tidegate.cli.unit_options import (
    CLUSTER,
    FILE,
    HEALTH,
    NARROWING,
    SINCE,
    UNIT,
    Given,
    takes,
)
from tidegate.cli.window import room_on

if TYPE_CHECKING:
    from tidegate.flows.entering import Found
    from tidegate.flows.session import Session
    from tidegate.model.finding import Finding
    from tidegate.model.run import RunRecord
    from tidegate.report.proof import OrderProof

BROKEN, MISSING = 3, 4


@click.command()
@click.argument("what", metavar="[PATH]", default="", shell_complete=complete_path)
@click.option("--record", type=FILE, help="What `sync --record` wrote down.")
@takes(SINCE, NARROWING, UNIT, CLUSTER, HEALTH)
@options.text_or_json
def verify(what: str, **told: Unpack[Given]) -> int:
    """Prove that an order was kept: by the record of a rollout, and by the cluster's own times.

    With PATH, units are also compared with Git. Without a record, the cluster alone is asked. What
    its whole seconds cannot decide is told as unproven.

    \b
    Examples:
      tidegate verify --record run.jsonl --context prod
      tidegate verify overlays/prod --context prod --record run.jsonl
      tidegate verify . --context prod --since 2026-11-17T22:00:00Z -o json
    """
    doing = say_first("looking at what was rolled out", quiet=told["output"] == "json")
    from tidegate.cli.consent import say_target
    from tidegate.flows.recording import read_run
    from tidegate.flows.verifying import verify_record
    from tidegate.report.proof import proof_document, proof_lines

    record, since = told["record"], told["since"]
    if not what and record is None:
        raise click.UsageError("give PATH, or --record FILE")
    if since is not None and record is not None:
        raise click.UsageError("--since is for a cluster without a record")
    run = read_run(record) if record is not None else None
    findings: tuple[Finding, ...] = ()
    if run is not None and run.head.is_simulated:
        proof, target = verify_record(run), "simulated cluster, gone with its rollout"
    else:
        (proof, findings), target = _ask(what, run, told), ""
    doing.clear()
    say_target(told, target)
    _say_of_record(run, told)
    options.show(told["output"], [proof_document(proof)], proof_lines(proof, room_on(sys.stdout)))
    code = BROKEN if proof.is_broken else MISSING if proof.missing else 0
    return max(code, options.say_findings(findings))


def _ask(what: str, run: RunRecord | None, told: Given) -> tuple[OrderProof, tuple[Finding, ...]]:
    """What the cluster says, and what is found of PATH on the way."""
    from tidegate.cli.asking import in_found, pointed_of, setting_of, target_of
    from tidegate.cli.running import run as run_story
    from tidegate.flows.session import open_session
    from tidegate.flows.verifying import verify_found, verify_run

    async def ask(session: Session, found: Found) -> tuple[OrderProof, tuple[Finding, ...]]:
        return await verify_found(session, found, run, told["since"])

    async def ask_of(known: RunRecord) -> OrderProof:
        async with open_session(target_of(told), setting_of(told)) as session:
            return await verify_run(session, known)

    if run is None or what:
        return in_found(pointed_of(what, told), told, ask)
    return run_story(ask_of(run)), ()


def _say_of_record(run: RunRecord | None, told: Given) -> None:
    from tidegate.cli.consent import target_names
    from tidegate.cli.saying import say
    from tidegate.report.proof import stamped

    if run is None:
        return
    if told["output"] != "json":
        say(f"record: begun {stamped(run.head.at)} on {', '.join(run.head.target)}")
    if run.cut:
        note("the last line of the record is not whole: the rollout was killed", severity="warning")
    if not run.head.is_simulated and [*run.head.target] != target_names(told):
        note("the record is of a cluster with another name or address", severity="warning")
