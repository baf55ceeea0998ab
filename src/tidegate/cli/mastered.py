"""Units whose controller is alive: it is asked, as its own command would ask it."""

from __future__ import annotations

import getpass
from collections.abc import Awaitable, Callable, Sequence

from tidegate.cli import options
from tidegate.cli.asking import setting_of, target_of
from tidegate.cli.consent import say_target
from tidegate.cli.exits import CODES
from tidegate.cli.naming import find_families
from tidegate.cli.nouns import NOUNS
from tidegate.cli.running import run
from tidegate.cli.saying import say
from tidegate.cli.unit_options import Given
from tidegate.errors import WordsError
from tidegate.flows.controllers import (
    PATIENCE,
    Answered,
    find_living,
    have_masters,
    reconcile,
    refresh,
    sources_of,
    suspended_error,
    sync_by_master,
    sync_wish,
)
from tidegate.flows.discover import Family
from tidegate.flows.named import NamedObject, all_named, find_named
from tidegate.flows.session import Session, open_session
from tidegate.flows.suspended import suspended_among
from tidegate.model.event import Result

Ask = Callable[[Session], Awaitable[list[Answered]]]


def reconcile_by_master(
    named: list[NamedObject], families: tuple[Family, ...], told: Given
) -> int | None:
    """Have Flux's controllers reconcile these; None where none is alive."""

    async def ask(session: Session) -> list[Answered]:
        living, within = await find_living(named, session), told["timeout"] or PATIENCE
        answers = []
        if told.get("with_source"):
            sources = await sources_of(living, all_named(families), session)
            answers = await reconcile(sources, session, _sayer(told), within)
        if all(one.is_done for one in answers):
            answers += await reconcile(living, session, _sayer(told), within)
        return answers

    return _asked(named, told, ask)


def sync_by_argo(named: list[NamedObject], families: tuple[Family, ...], told: Given) -> int | None:
    """Have Argo CD sync these, one behind the other by their waves; None where it is not alive."""
    turns = {one.id: turn for turn, one in enumerate(all_named(families))}

    async def ask(session: Session) -> list[Answered]:
        living = await find_living(sorted(named, key=lambda one: turns[one.id]), session)
        wish = sync_wish(
            by=getpass.getuser(),
            revision=told["at"],
            prunes=told["prune"],
            forces=told["force"],
            resources=told["resources"],
        )
        answers: list[Answered] = []
        for one in living:
            answers.append(await sync_by_master(one, wish, session, _sayer(told), told["timeout"]))
            if not answers[-1].is_done:
                break
        return answers

    code = _asked(named, told, ask)
    if code is None and told["at"]:
        problem = (
            "what stands here is rolled out, and no Argo CD is alive that had another revision"
        )
        hint = f"`git worktree add ../at {told['at']}`, and `-C ../at`, rolls out that one"
        raise WordsError("words.revision", problem, hint=hint)
    return code


def refresh_by_argo(called: str, told: Given, *, hard: bool) -> None:
    """Have a live Argo CD compare an Application again; where none is alive, nobody has to."""
    families = find_families(told["place"], told)
    named = find_named(families, NOUNS["application"], (called,), home=told["home"])

    async def ask() -> None:
        async with open_session(target_of(told), setting_of(told)) as session:
            if await have_masters(named, session):
                (one,) = await find_living(named, session)
                await refresh(one, session, hard=hard)

    run(ask())


def _asked(named: Sequence[NamedObject], told: Given, ask: Ask) -> int | None:
    """What comes of asking; None where somebody wants it rolled out from here, or nobody is there.

    What is suspended is refused either way: whoever names it does not expect that nothing is done.
    """
    if told["sandbox"] or told["dry_run"] or told["take_over"] or told["hand_back"]:
        return None

    async def asked() -> list[Answered] | None:
        async with open_session(target_of(told), setting_of(told)) as session:
            if not await have_masters(named, session):
                for name in await suspended_among((one.id for one in named), session):
                    raise suspended_error(name)
                return None
            say_target(told)
            return await ask(session)

    answers = run(asked())
    if answers is None:
        return None
    options.show(told["output"], [one.document for one in answers], ())
    return CODES[Result.PASSED if all(one.is_done for one in answers) else Result.FAILED]


def _sayer(told: Given) -> Callable[[str], None]:
    """As Flux's own command: what is done is told beside the output; programs read the answers."""
    is_json = told["output"] == "json"
    return lambda line: None if is_json else say(line, err=True)
