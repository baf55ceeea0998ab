"""A comparison foresees what a replacement does: on random writes by several managers."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tests.support.cluster_client import ClusterClient, require_body
from tests.support.predicted_changes import changes_between, is_touched
from tests.support.sequence_runner import NAMESPACE, Run, named, prepare
from tests.support.write_sequences import Operation, Step, random_sequences
from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.k8s.objects import JsonObject, Ref
from tidegate.model.plans.change import DiffAction
from tidegate.plan.diff.replace import compare_replacement, replacement_fingerprint
from tidegate.sandbox.world import Sandbox
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import NotFound, Success
from tidegate.world.requests import Verb, Write
from tidegate.world.resilient import ResilientWorld

MANAGER = "anna"
ENOUGH = 100
"""With fewer replacements the claim would mean little."""


def a_replacement(ref: Ref, expected: JsonObject, live: JsonObject) -> Write:
    version = get_text(live, "metadata", "resourceVersion")
    body = msgspec.json.encode(expected)
    return Write(verb=Verb.REPLACE, ref=ref, body=body, manager=MANAGER, resource_version=version)


def is_ours(step: Step) -> bool:
    return step.operation is Operation.APPLY and step.by == MANAGER and not step.subresource


def surprises(expected: JsonObject, before: JsonObject, after: JsonObject) -> Iterator[str]:
    """What happened and was not foreseen, and what a second replacement would still do."""
    foreseen = compare_replacement(expected, before, manager=MANAGER, fingerprint="")
    really = sorted(set(changes_between(before, after)))
    texts = [field.path for field in foreseen.fields]
    if foreseen.action is DiffAction.KEEP and really:
        yield f"kept, and yet written: {really}"
    for path in really if get_mappings(before, "metadata", "managedFields") else ():
        if not any(is_touched(path, other) for other in texts):
            yield f"`{path}` changed; foreseen were {texts}"
    fingerprint = replacement_fingerprint(expected, after)
    again = compare_replacement(expected, after, manager=MANAGER, fingerprint=fingerprint)
    if again.action is not DiffAction.KEEP:
        yield f"not kept by its seal: {again}"


async def replaced_in(
    run: Run, client: ClusterClient
) -> list[tuple[JsonObject, JsonObject, JsonObject]]:
    """Run a sequence in which our manager replaces: what it wanted, what was there, what is."""
    result = []
    while (step := run.step) is not None:
        before = run._live
        if run.is_pointless:
            run.receive(NotFound(""))
        elif before is None or not is_ours(step):
            run.receive((await client.ask(run.request()))[0])
        else:
            expected = named(run.ref.kind, step, name=run.ref.name, namespace=NAMESPACE)
            (outcome,) = await client.ask(a_replacement(run.ref, expected, before))
            run.receive(outcome)
            if isinstance(outcome, Success):
                result.append((expected, before, require_body(outcome)))
    return result


async def test_a_comparison_foresees_what_a_replacement_changes_and_then_nothing() -> None:
    world = Sandbox()
    await prepare(ClusterClient(Dispatcher(ResilientWorld(world))))
    client = ClusterClient(Dispatcher(world), namespace=NAMESPACE)
    sequences = random_sequences(240, seed=11)

    replaced = [
        item
        for number, sequence in enumerate(sequences)
        for item in await replaced_in(Run(sequence, f"replaced-{number}"), client)
    ]

    assert [line for item in replaced for line in surprises(*item)] == []
    assert len(replaced) > ENOUGH
