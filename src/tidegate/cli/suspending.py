"""What `suspend` and `resume` do and say."""

from __future__ import annotations

import click

from tidegate.cli import options
from tidegate.cli.asking import setting_of, target_of
from tidegate.cli.consent import say_target
from tidegate.cli.doing import say_first
from tidegate.cli.exits import CODES
from tidegate.cli.naming import find_families, find_meant
from tidegate.cli.nouns import NOUNS
from tidegate.cli.running import run
from tidegate.cli.saying import note, say
from tidegate.cli.unit_options import Given
from tidegate.flows.controllers import PATIENCE, Answered, await_resumed
from tidegate.flows.named import NamedObject
from tidegate.flows.session import Session, open_session
from tidegate.flows.suspending import Suspended, masters_of, suspend
from tidegate.model.event import Result
from tidegate.model.unit import UnitId

DEEDS = {True: ("suspending", "suspended"), False: ("resuming", "resumed")}


def pause(noun: str, names: tuple[str, ...], told: Given, *, every: bool, suspends: bool) -> int:
    """Suspend what is meant, or resume it, and say so as Flux's own command does."""
    doing = say_first(f"looking for {noun}", quiet=told["output"] == "json")
    if sum(map(bool, (names, told["labels"], every))) != 1:
        raise click.UsageError("give names, or -l SELECTOR, or --all")
    families = find_families(told["place"], told)
    named = find_meant(families, NOUNS[noun], names, told["labels"], told["home"])
    doing.clear()
    say_target(told)

    async def paused() -> tuple[list[Suspended], list[Answered]]:
        async with open_session(target_of(told), setting_of(told)) as session:
            found = []
            for one in named:
                _say(f"► {DEEDS[suspends][0]} {_title(one)}", told)
                found.append(await suspend(one, session, suspends=suspends))
                _say(f"✔ {one.id.kind.lower()} {DEEDS[suspends][1]}", told)
            return found, [] if suspends else await _await_resumed(found, told, session)

    found, answers = run(paused())
    heard = {one.id: one for one in answers}
    documents = [_document(one, heard.get(one.named.id), suspends=suspends) for one in found]
    options.show(told["output"], documents, ())
    for one in found:
        _note(one, suspends=suspends)
    return CODES[Result.PASSED if all(one.is_done for one in answers) else Result.FAILED]


async def _await_resumed(resumed: list[Suspended], told: Given, session: Session) -> list[Answered]:
    """Wait for controllers that go on with what was resumed: of one always, of several if asked.

    Where none is alive, nobody goes on with it by itself, and that is told.
    """
    alive, unseen = await masters_of(resumed, session)
    for line in unseen:
        note(line)
    goes_on = {one.named.id: (one.named.id.cluster, one.named.id.kind) in alive for one in resumed}
    for one in resumed:
        name = one.named.id
        if not (goes_on[name] or one.by_git or unseen):
            note(f"nobody is at work on `{name}` here: `tidegate {_deed(name)}` rolls it out now")
    wished = told["wait"]
    if not (len(resumed) == 1 if wished is None else wished):
        return []
    within = told["timeout"] or PATIENCE
    return [
        await await_resumed(one.living, session, lambda line: _say(line, told), within)
        for one in resumed
        if one.living is not None and goes_on[one.named.id]
    ]


def _deed(name: UnitId) -> str:
    """What rolls a unit out now, or those that take from a source."""
    if name.kind == "Application":
        return f"app sync {name.name}"
    noun = next(noun for noun, kinds in NOUNS.items() if name.kind in kinds)
    return f"reconcile {noun} {name.name}"


def _title(named: NamedObject) -> str:
    name = named.id
    return f"{name.kind.lower()} {name.name} in {name.namespace} namespace"


def _note(one: Suspended, *, suspends: bool) -> None:
    """What is not as somebody may expect."""
    name = one.named.id
    if one.living is None and suspends:
        note(f"`{name}` is not in the cluster: a record of it is, which `tidegate sync` obeys")
    if one.by_git and not suspends:
        note(
            f"Git itself suspends `{name}`, at {one.named.where}: remove it there",
            severity="warning",
        )


def _document(one: Suspended, heard: Answered | None, *, suspends: bool) -> dict[str, object]:
    name = one.named.id
    answer = {} if heard is None else heard.document
    return {
        **answer,
        "kind": name.kind,
        "namespace": name.namespace,
        "name": name.name,
        "cluster": name.cluster,
        "suspended": suspends or one.by_git,
        "record": one.living is None,
    }


def _say(line: str, told: Given) -> None:
    """As Flux's own command: what is done is told beside the output."""
    if told["output"] != "json":
        say(line, err=True)
