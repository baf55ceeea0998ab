"""Write sequences sent to a World, many at once."""

from __future__ import annotations

import msgspec

from tests.support.cluster_client import ClusterClient, require_body, require_live
from tests.support.objects import a_definition, a_namespace
from tests.support.write_answers import narrowed, owners_of, shape_for, spoken_of
from tests.support.write_sequences import GATE, Answer, Operation, Sequence, Step, WriteOutcome
from tidegate.model.k8s.objects import JsonObject, Kind, LiveObject, Ref
from tidegate.sandbox.server.patches import apply_merge_patch
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import AlreadyExists, Conflict, Invalid, NotFound, Outcome, Success
from tidegate.world.protocol import World
from tidegate.world.requests import PatchType, Verb, Write
from tidegate.world.resilient import ResilientWorld

NAMESPACE = "ownership"


async def answers_of(world: World, sequences: list[Sequence]) -> list[list[Answer]]:
    """What a world answers to each step; the first steps of all go first, then the second ones."""
    await prepare(ClusterClient(Dispatcher(ResilientWorld(world))))
    client = ClusterClient(Dispatcher(world))
    runs = [Run(sequence, f"run-{number}") for number, sequence in enumerate(sequences)]
    await client.ask(*(Write(verb=Verb.DELETE, ref=run.ref) for run in runs))
    while waiting := [run for run in runs if run.step is not None]:
        for run in [run for run in waiting if run.is_pointless]:
            run.receive(NotFound(""))
        sent = [run for run in waiting if run.step is not None and not run.is_pointless]
        outcomes = await client.ask(*(run.request() for run in sent))
        for run, outcome in zip(sent, outcomes, strict=True):
            run.receive(outcome)
    return [run.answers for run in runs]


async def prepare(client: ClusterClient) -> None:
    """Make the namespace and the kind that sequences use."""
    require_live(await client.apply(a_namespace(NAMESPACE)))
    require_live(await client.apply(a_definition(GATE.group)))
    await client.eventually(
        lambda: client.get(Ref(GATE, NAMESPACE, "nobody")),
        lambda result: isinstance(result, NotFound),
    )


class Run:
    """One sequence on its way through a server; steps of many runs are sent at once."""

    def __init__(self, sequence: Sequence, name: str) -> None:
        self.sequence = sequence
        self.answers: list[Answer] = []
        self.ref = Ref(sequence.kind, NAMESPACE, name)
        self._live: JsonObject | None = None
        self._shape = shape_for(sequence.kind)
        self._spoken = spoken_of(sequence)

    @property
    def step(self) -> Step | None:
        steps = self.sequence.steps
        return steps[len(self.answers)] if len(self.answers) < len(steps) else None

    @property
    def is_pointless(self) -> bool:
        """Only what was read can be replaced."""
        return (
            self.step is not None
            and self.step.operation is Operation.REPLACE
            and self._live is None
        )

    def request(self) -> Write:
        step = self.step
        assert step is not None
        kind, ref = self.sequence.kind, self.ref
        verb, body = Verb.PATCH, step.body
        match step.operation:
            case Operation.DELETE:
                return Write(verb=Verb.DELETE, ref=ref)
            case Operation.APPLY | Operation.CREATE:
                verb = Verb.APPLY if step.operation is Operation.APPLY else Verb.CREATE
                body = named(kind, step, name=ref.name, namespace=NAMESPACE)
            case Operation.REPLACE:
                verb, body = Verb.REPLACE, apply_merge_patch(self._read(), step.body)
            case Operation.MERGE | Operation.JSON:
                pass
        return Write(
            verb=verb,
            ref=ref,
            body=msgspec.json.encode(body),
            patch_type=PatchType.JSON if step.operation is Operation.JSON else PatchType.MERGE,
            subresource=step.subresource,
            manager=step.by,
            force=step.force,
        )

    def _read(self) -> JsonObject:
        """Custom objects are replaced in the version that was read only; others are not held to it,
        since a controller may have written their status."""
        assert self._live is not None
        metadata = self._live["metadata"]
        assert isinstance(metadata, dict)
        if self.sequence.kind == GATE:
            return self._live
        kept = {name: part for name, part in metadata.items() if name != "resourceVersion"}
        return {**self._live, "metadata": kept}

    def receive(self, outcome: Outcome) -> None:
        step = self.step
        assert step is not None
        self.answers.append(narrowed(self._answer(outcome), self._spoken, self._shape))
        if step.operation is Operation.DELETE:
            self._live = None
        elif isinstance(outcome, Success):
            self._live = require_body(outcome)

    def _answer(self, outcome: Outcome) -> Answer:
        match outcome:
            case Success(live=LiveObject()) if (
                self.step and self.step.operation is not Operation.DELETE
            ):
                return self._done(require_body(outcome))
            case Success():
                return Answer(WriteOutcome.DONE)
            case Conflict(owners=managers) if managers:
                return Answer(
                    WriteOutcome.CONFLICT, [f"{by.manager} {by.field}" for by in managers]
                )
            case Invalid():
                return Answer(
                    WriteOutcome.INVALID, sorted({cause.field for cause in outcome.causes})
                )
            case NotFound():
                return Answer(WriteOutcome.MISSING)
            case AlreadyExists():
                return Answer(WriteOutcome.EXISTS)
            case _:
                raise AssertionError(outcome)

    def _done(self, body: JsonObject) -> Answer:
        metadata = body["metadata"]
        before = self._live["metadata"] if self._live else None
        assert isinstance(metadata, dict)
        version = before.get("resourceVersion") if isinstance(before, dict) else None
        return Answer(
            WriteOutcome.DONE,
            is_new_version=metadata["resourceVersion"] != version,
            body=body,
            owners=owners_of(metadata.get("managedFields")),
        )


def named(kind: Kind, step: Step, *, name: str, namespace: str) -> JsonObject:
    """The body of a step with what every object has."""
    assert isinstance(step.body, dict)
    metadata = step.body.get("metadata", {})
    assert isinstance(metadata, dict)
    return {
        **step.body,
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {**metadata, "name": name, "namespace": namespace},
    }
