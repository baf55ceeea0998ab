"""A comparison foresees what a replacement does: on random writes by several managers."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tests.fakes.sequence_runs import NAMESPACE, Run, named, prepare
from tests.fakes.write_sequences import Deed, Step, random_sequences
from tests.unit.plan.foreseen import changes_between, is_touched
from tidegate.model.change import Fate
from tidegate.model.objects import Ref
from tidegate.model.reading import mappings, text
from tidegate.plan.diff.replacing import compare_replaced, seal_replaced
from tidegate.sandbox.world import Sandbox
from tidegate.testing import Body, Desk, body_of
from tidegate.world.calls import Verb, Write
from tidegate.world.exchange import Exchange
from tidegate.world.facts import Done, Missing
from tidegate.world.line import Line

MANAGER = "anna"
ENOUGH = 100
"""With fewer replacements the claim would mean little."""


def a_replacement(ref: Ref, wanted: Body, live: Body) -> Write:
    version = text(live, "metadata", "resourceVersion")
    body = msgspec.json.encode(wanted)
    return Write(verb=Verb.REPLACE, ref=ref, body=body, manager=MANAGER, version=version)


def is_ours(step: Step) -> bool:
    return step.deed is Deed.APPLY and step.by == MANAGER and not step.subresource


def surprises(wanted: Body, before: Body, after: Body) -> Iterator[str]:
    """What happened and was not foreseen, and what a second replacement would still do."""
    foreseen = compare_replaced(wanted, before, manager=MANAGER, seal="")
    really = sorted(set(changes_between(before, after)))
    said = [field.path for field in foreseen.fields]
    if foreseen.deed is Fate.KEEP and really:
        yield f"kept, and yet written: {really}"
    for path in really if mappings(before, "metadata", "managedFields") else ():
        if not any(is_touched(path, other) for other in said):
            yield f"`{path}` changed; foreseen were {said}"
    seal = seal_replaced(wanted, after)
    again = compare_replaced(wanted, after, manager=MANAGER, seal=seal)
    if again.deed is not Fate.KEEP:
        yield f"not kept by its seal: {again}"


async def replaced_in(run: Run, desk: Desk) -> list[tuple[Body, Body, Body]]:
    """Run a sequence in which our manager replaces: what it wanted, what was there, what is."""
    found = []
    while (step := run.step) is not None:
        before = run._live
        if run.is_pointless:
            run.hear(Missing(""))
        elif before is None or not is_ours(step):
            run.hear((await desk.ask(run.request()))[0])
        else:
            wanted = named(run.ref.kind, step, name=run.ref.name, namespace=NAMESPACE)
            (outcome,) = await desk.ask(a_replacement(run.ref, wanted, before))
            run.hear(outcome)
            if isinstance(outcome, Done):
                found.append((wanted, before, body_of(outcome)))
    return found


async def test_a_comparison_foresees_what_a_replacement_changes_and_then_nothing() -> None:
    world = Sandbox()
    await prepare(Desk(Exchange(Line(world))))
    desk = Desk(Exchange(world), namespace=NAMESPACE)
    sequences = random_sequences(240, seed=11)

    replaced = [
        one
        for number, sequence in enumerate(sequences)
        for one in await replaced_in(Run(sequence, f"replaced-{number}"), desk)
    ]

    assert [line for one in replaced for line in surprises(*one)] == []
    assert len(replaced) > ENOUGH
