"""`tidegate sync`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Unpack

import click

from tidegate.cli import options
from tidegate.cli.completing import complete_path
from tidegate.cli.doing import say_first
from tidegate.cli.saying import note
from tidegate.cli.unit_options import (
    APPROVING,
    ASSUMING,
    CONTENTS,
    FILE,
    NARROWING,
    PRUNING,
    TARGET,
    UNIT,
    WATCHING,
    Given,
    takes,
)

if TYPE_CHECKING:
    from tidegate.cli.doing import Doing
    from tidegate.cli.screen import Screen
    from tidegate.flows.entering import Found
    from tidegate.flows.masters import Met
    from tidegate.flows.planning import Planned
    from tidegate.flows.pointing import Pointed
    from tidegate.flows.preview import Preview
    from tidegate.flows.recording import RunBook
    from tidegate.flows.rollout import Rolling
    from tidegate.flows.saved import SavedPlan
    from tidegate.flows.session import Session
    from tidegate.flows.syncing import Prepared
    from tidegate.model.event import Result
    from tidegate.report.rollout.course import Course


@click.command()
@click.argument("what", metavar="PATH", default="", shell_complete=complete_path)
@takes(NARROWING, UNIT, TARGET, ASSUMING, PRUNING, CONTENTS)
@click.option(
    "--resource",
    "resources",
    multiple=True,
    metavar="GROUP:KIND:[NAMESPACE/]NAME",
    help="Only this object, and no hooks; `*` is any, `!` before it leaves out; may be repeated.",
)
@click.option(
    "--plan",
    type=FILE,
    help="Run exactly what `plan --save` wrote into this file, or refuse; PATH is in it.",
)
@click.option(
    "--force", is_flag=True, help="Delete and make again what cannot be changed as it lives."
)
@click.option("--hooks", is_flag=True, help="Run hooks though nothing has changed.")
@click.option("--yes", is_flag=True, help="Do not ask before a real cluster is changed.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@click.option(
    "--preflight",
    type=click.Choice(["auto", "local", "server"]),
    default="auto",
    show_default=True,
    help="What the server is asked about before the first write: what rules here leave open, only "
    "what webhooks, policies and CRDs have a word in, or every object.",
)
@click.option(
    "--on-failure",
    type=click.Choice(["stop", "continue"]),
    default="stop",
    show_default=True,
    help="What becomes of what lies behind a failed step.",
)
@click.option(
    "--adopt-name", is_flag=True, help="Take over a name that another directory had until now."
)
@click.option(
    "--keep-going", is_flag=True, help="Leave out a unit with a fault, and what waits for it."
)
@click.option(
    "--take-over",
    is_flag=True,
    help="Hold the controllers of Argo CD or Flux that bring these units, and roll out instead.",
)
@click.option("--hand-back", is_flag=True, help="Let them go again when the rollout has passed.")
@click.option(
    "--take-broken-seals", is_flag=True, help="Apply encrypted files that were changed by hand."
)
@click.option(
    "--record",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write down all that happens, as JSON lines: `tidegate verify` reads it.",
)
@takes(APPROVING, WATCHING)
def sync(what: str, **told: Unpack[Given]) -> int:
    """Roll out PATH wave by wave; each gate opens when what was applied is healthy.

    PATH is a repository of Argo CD's or Flux's, or of both, a directory of manifests, a Helm chart
    or a Kustomize overlay. What is there already and as wanted is left alone. Ctrl-C stops cleanly;
    the same command goes on where it stopped.

    \b
    Examples:
      tidegate sync examples/first --sandbox
      tidegate sync overlays/prod --context prod --prune
      tidegate sync charts/web --namespace web --sync-option CreateNamespace=true
      tidegate sync overlays/prod --cluster east=prod-east --cluster west=prod-west
      tidegate sync overlays/prod --resource apps:Deployment:web --resource ':Service:web'
      tidegate sync . --context prod --take-over --hand-back
      tidegate sync --plan prod.plan --context prod --yes
      tidegate sync overlays/prod --context prod --record run.jsonl
    """
    doing = say_first(f"reading {what}", quiet=told["output"] == "json")
    from tidegate.cli.asking import in_found, pointed_of
    from tidegate.cli.consent import needs_consent, say_target
    from tidegate.cli.previewing import show_found
    from tidegate.cli.running import run
    from tidegate.flows.planning import no_part
    from tidegate.flows.preview import preview_found
    from tidegate.flows.saved import read_plan

    only, shown = told["resources"], ""
    if told["prune"] and only:
        raise no_part()
    if told["plan"] and only:
        raise click.UsageError("--resource does not go with --plan, which is all of a plan")
    saved = read_plan(told["plan"]) if told["plan"] else None
    what = what or (saved.what if saved else "")
    pointed = pointed_of(what, told)
    record = None if told["dry_run"] else _open_record(told)
    asks = needs_consent(told)
    if asks or told["dry_run"]:
        doing.say(f"comparing {what} with what lives")
        found, previews = in_found(
            pointed, told, lambda session, one: preview_found(session, one, only)
        )
        doing.clear()
        if told["dry_run"]:
            return show_found(found, previews, told)
        say_target(told)
        shown = _agreed(previews)
    return run(_sync(pointed, told, doing, _Agreed(shown, saved, record)))


class _Agreed(NamedTuple):
    """What is to be rolled out and nothing else: what was shown, what was saved; and its record."""

    shown: str = ""
    saved: SavedPlan | None = None
    record: RunBook | None = None

    async def keep_to(self, prepared: Prepared, found: Found, session: Session) -> Prepared:
        """What is prepared, if it is that. Raises where it is not."""
        from tidegate.flows.saved import with_saved
        from tidegate.flows.syncing import refuse_other

        if self.saved is not None:
            prepared = await with_saved(self.saved, prepared, found, session)
        refuse_other(prepared.planned.plan, self.shown)
        return prepared

    def record_of(self, found: Found, session: Session) -> RunBook | None:
        """Where it is written down what happens to these units in these clusters."""
        if self.record is not None:
            self.record.introduce(found.families, session.target)
        return self.record

    def end_record(self, result: Result) -> None:
        """Say where not all could be written down; it is an error where nothing else is wrong."""
        from tidegate.model.event import Result

        if self.record is not None and (fault := self.record.fault()):
            if result is Result.PASSED:
                raise fault
            note(fault.problem, severity="warning")


def _open_record(told: Given) -> RunBook | None:
    """Where it is written down what happens. Raises while nothing has happened yet."""
    from tidegate.flows.recording import open_record

    if told["record"] is None:
        return None
    book = open_record(told["record"])
    click.get_current_context().call_on_close(book.close)
    return book


def _agreed(previews: list[Preview]) -> str:
    """The plans that somebody agrees to. Raises where nobody does."""
    from tidegate.cli.consent import agree
    from tidegate.report.findings import as_warning, finding_lines
    from tidegate.report.plan import summary_line

    if any(one.has_changes for one in previews):
        lines = [summary_line(one.differences) for one in previews]
        lines += finding_lines(as_warning(note) for one in previews for note in one.contents)
        agree(lines, "Roll out?")
    return " ".join(one.asked.digest for one in previews)


async def _sync(pointed: Pointed, told: Given, doing: Doing, agreed: _Agreed) -> int:
    from msgspec.structs import replace

    from tidegate.cli.consent import say_target
    from tidegate.cli.exits import CODES
    from tidegate.cli.rolling import on_screen
    from tidegate.flows.approving import approved_by
    from tidegate.flows.rollout import Preflight, Rolling
    from tidegate.flows.syncing import prepare, refuse_unknown

    keeps_going = told["keep_going"]
    rolling = Rolling(keeps_going=keeps_going, preflight=Preflight(told["preflight"]))
    async with on_screen(pointed, told, doing, "rendering") as (screen, session, found):
        prepared = await prepare(found, session, told["resources"], keeps_going=keeps_going)
        prepared = await agreed.keep_to(prepared, found, session)
        doing.clear()
        if not agreed.shown:
            say_target(told)
        options.say_findings(prepared.findings)
        found.refuse_faults(prepared.planned.findings, keeps_going=keeps_going)
        left_out = {**prepared.left_out}
        if session.target.simulation is None:
            seals = told["take_broken_seals"]
            left_out = refuse_unknown(prepared, keeps_going=keeps_going, takes_broken_seals=seals)
        options.say_notes(prepared.planned.notes)
        rolling = replace(
            rolling, left_out=left_out, approved=approved_by(told["approved"], found.members)
        )
        asked = _Asked(pointed, told, agreed.record_of(found, session))
        result = await _roll_out(screen, session, prepared, rolling, asked)
    _say_left(screen.course)
    agreed.end_record(result)
    return max(CODES[result], _say_unknown(found, session))


def _say_unknown(found: Found, session: Session) -> int:
    """Tell what could not be had, and gives the exit code; a real cluster got nothing of it."""
    from tidegate.flows.weakness import weakness_of

    if session.target.simulation is None:
        return 0
    return options.say_findings(weakness_of(found.members, found.findings))


def _say_left(course: Course) -> None:
    _say(f"{left} asks for confirmation; `--confirm` prunes it" for left in course.kept)
    _say(f"{left} asks for being left alone: it is not written" for left in course.left)


class _Asked(NamedTuple):
    """What is pointed at, what is said of it, and where it is written down what happens."""

    pointed: Pointed
    told: Given
    record: RunBook | None


async def _roll_out(
    screen: Screen,
    session: Session,
    prepared: Prepared,
    rolling: Rolling,
    asked: _Asked,
) -> Result:
    """Roll out, with whoever else brings these units held, and let go again if that is wished."""
    from msgspec.structs import replace

    from tidegate.cli.rolling import show_rollout
    from tidegate.flows.masters import meet_masters
    from tidegate.flows.releases import make_releases
    from tidegate.flows.statuses import make_statuses
    from tidegate.flows.syncing import forget_leaving, may_change, plan_again
    from tidegate.model.event import Result

    told, planned, findings = asked.told, prepared.planned, prepared.findings
    takes_over, hands_back = told["take_over"], told["hand_back"]
    met = await meet_masters(planned, session, takes_over=takes_over, hands_back=hands_back)
    _say(met.notes)

    newest = planned
    out, seals = rolling.left_out if rolling.keeps_going else {}, told["take_broken_seals"]

    async def read_again() -> Planned:
        nonlocal newest
        newer = plan_again(asked.pointed, session, told["resources"], out, takes_broken_seals=seals)
        newest = met.hold_also(await newer)
        return newest

    if not told["resources"]:  # of a part nobody can say how the whole is
        statuses = await make_statuses(met.planned, session, findings)
        rolling = replace(
            rolling, statuses=statuses, releases=await make_releases(met.planned, session)
        )
    if told["plan"] is None and may_change(planned.plan, session):  # a saved one is run as it is
        rolling = replace(rolling, read_again=read_again)
    result = await show_rollout(screen, session, met.planned.plan, rolling, told, asked.record)
    if result is Result.PASSED:
        await forget_leaving(newest, session)
    await _let_go(met, session, hands_back=hands_back and result is Result.PASSED)
    return result


async def _let_go(met: Met, session: Session, *, hands_back: bool) -> None:
    from tidegate.flows.masters import hand_back

    if hands_back:
        _say(await hand_back(met, session))
    elif met.held:
        _say((f"{met.told_held}; `--hand-back` lets them go",))


def _say(notes: Iterable[str]) -> None:
    for one in notes:
        note(one)
