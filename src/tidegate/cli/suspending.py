"""What `suspend` and `resume` do and say."""

from __future__ import annotations

import click

from tidegate.cli import options
from tidegate.cli.asking import setting_of, target_of
from tidegate.cli.consent import say_target
from tidegate.cli.doing import say_first
from tidegate.cli.naming import find_families, find_meant
from tidegate.cli.nouns import NOUNS
from tidegate.cli.running import run
from tidegate.cli.saying import note, say
from tidegate.cli.unit_options import Given
from tidegate.flows.named import NamedObject
from tidegate.flows.session import open_session
from tidegate.flows.suspending import Suspended, suspend

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

    async def paused() -> list[Suspended]:
        async with open_session(target_of(told), setting_of(told)) as session:
            found = []
            for one in named:
                _say(f"► {DEEDS[suspends][0]} {_title(one)}", told)
                found.append(await suspend(one, session, suspends=suspends))
                _say(f"✔ {one.id.kind.lower()} {DEEDS[suspends][1]}", told)
            return found

    found = run(paused())
    options.show(told["output"], [_document(one, suspends=suspends) for one in found], ())
    for one in found:
        _note(one, suspends=suspends)
    return 0


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


def _document(one: Suspended, *, suspends: bool) -> dict[str, object]:
    name = one.named.id
    return {
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
