"""What a comparison foresees, held against what an apply then really does."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.support.cluster_client import ClusterClient, require_body
from tests.support.live_objects import fields_of
from tests.support.sequence_runner import NAMESPACE, Run, prepare
from tests.support.write_sequences import GATE, Operation, Sequence, Step
from tidegate.model.k8s.json_fields import get_mapping, get_text
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.plans.change import DiffAction, Difference
from tidegate.plan.diff.compare import compare
from tidegate.plan.diff.fingerprint import compute_fingerprint, content_digest
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.messages import Success
from tidegate.world.protocol import World
from tidegate.world.requests import Write
from tidegate.world.resilient import ResilientWorld

MANAGER = "anna"
NO_MANAGERS: frozenset[str] = frozenset()
FOLLOWING = "spec.externalTrafficPolicy"
"""What a server sets or takes away by itself, as other fields of a Service say."""
REVISION = "deployment.kubernetes.io/revision"
SERVERS_OWN = frozenset(["generation", "managedFields", "resourceVersion", "uid"])
KEYS = ("name", "containerPort", "port", "protocol", "mountPath")
ITEM = re.compile(r"\[[^\]]*\]")


async def surprises_of(world: World, sequences: list[Sequence]) -> list[str]:
    """Run all steps; wherever our manager applies, say what its comparison did not foresee.

    Our manager applies everything twice: the second time is foreseen, too.
    """
    await prepare(ClusterClient(Dispatcher(ResilientWorld(world))))
    client = ClusterClient(Dispatcher(world), namespace=NAMESPACE)
    surprises = []
    for number, sequence in enumerate(sequences):
        run = Run(_forced(sequence), f"foreseen-{number}")
        while (step := run.step) is not None:
            before = run._live
            request = None if run.is_pointless else run.request()
            result = [] if request is None else await _tried(client, run, request)
            if request is None:
                run.answers.append(run.answers[-1])
            message = f"{sequence.shows} step {len(run.answers)} ({step.operation} by {step.by})"
            for after in result if before is not None else ():
                surprises += [f"{message}: {line}" for line in _surprises(step, run, before, after)]
                before = after
    return surprises


async def _tried(client: ClusterClient, run: Run, request: Write) -> list[JsonObject]:
    """The object after this write, and after the same again."""
    is_ours = _is_ours(run.step)
    (outcome,) = await client.ask(request)
    run.receive(outcome)
    if not isinstance(outcome, Success) or outcome.live is None:
        return []
    if not is_ours:
        return [require_body(outcome)]
    (again,) = await client.ask(request)
    run._live = require_body(again)
    return [require_body(outcome), run._live]


def _is_ours(step: Step | None) -> bool:
    return (
        step is not None
        and step.operation is Operation.APPLY
        and step.by == MANAGER
        and not step.subresource
    )


def _forced(sequence: Sequence) -> Sequence:
    """Our manager always gets what it wants; the others apply as they do."""
    steps = [
        Step(step.operation, by=step.by, force=True, body=step.body) if _is_ours(step) else step
        for step in sequence.steps
    ]
    return Sequence(sequence.shows, sequence.kind, steps)


def _surprises(step: Step, run: Run, before: JsonObject | None, after: JsonObject) -> Iterator[str]:
    if before is None:
        return
    if not _is_ours(step):
        yield from broken_seal(before, after)
        return
    text = step.body if isinstance(step.body, dict) else {}
    expected: JsonObject = {
        **text,
        "apiVersion": run.ref.kind.api_version,
        "kind": run.ref.kind.name,
        "metadata": {
            **get_mapping(text, "metadata"),
            "name": run.ref.name,
            "namespace": NAMESPACE,
        },
    }
    foreseen = compare(expected, before, manager=MANAGER, adopted=NO_MANAGERS)
    yield from unforeseen(foreseen, before, after, is_custom=run.ref.kind == GATE)
    yield from not_kept_by_seal(expected, after)


def broken_seal(before: JsonObject, after: JsonObject) -> Iterator[str]:
    """A write of another client changes the digest if and only if it changes our fields."""
    is_same = compute_fingerprint(before, MANAGER) == compute_fingerprint(after, MANAGER)
    if fields_of(before, MANAGER) != fields_of(after, MANAGER):
        if is_same:
            yield "the digest is equal, but we manage other fields now"
    elif not any(changes_between(before, after)) and not is_same:
        yield "the digest differs, but nothing changed"


def unforeseen(
    foreseen: Difference, before: JsonObject, after: JsonObject, *, is_custom: bool = False
) -> Iterator[str]:
    """What happened and was not foreseen, and what was foreseen and did not happen."""
    really = sorted(set(changes_between(before, after)))
    text = {field.path: field.after for field in foreseen.fields}
    is_new = _version(before) != _version(after)
    # A null alone is no reason to write, even though a server notes who said it.
    claims = fields_of(before, MANAGER) and fields_of(before, MANAGER) != fields_of(after, MANAGER)
    if foreseen.action is DiffAction.KEEP and (really or (claims and not is_custom)):
        yield f"kept, and yet written: {really}"
    if not is_new and foreseen.action is not DiffAction.KEEP and not _is_doubt(foreseen, is_custom):
        yield f"nothing was written of {foreseen}"
    for path in really:
        if path != FOLLOWING and not any(is_touched(path, other) for other in text):
            yield f"`{path}` changed; foreseen were {sorted(text)}"
    for path, value in text.items():
        if (value or not is_custom) and not any(is_touched(path, other) for other in really):
            yield f"`{path}` did not change; what did: {really}"


def _is_doubt(foreseen: Difference, is_custom: bool) -> bool:  # noqa: FBT001
    """The defaults of a custom kind are not known: what goes may come back by itself."""
    return is_custom and any(not field.after for field in foreseen.fields)


def _version(body: JsonObject) -> str:
    return get_text(body, "metadata", "resourceVersion")


def not_kept_by_seal(
    expected: JsonObject, live: JsonObject, *, manager: str = MANAGER
) -> Iterator[str]:
    """What was just applied needs nothing, once it is recorded."""
    recorded = compare(
        expected,
        live,
        manager=manager,
        fingerprint=compute_fingerprint(live, manager),
        digest=content_digest(expected),
        adopted=NO_MANAGERS,
    )
    if recorded.action is not DiffAction.KEEP:
        yield f"not kept by its seal: {recorded}"


def changes_between(before: JsonObject, after: JsonObject) -> Iterator[str]:
    """The paths at which two bodies differ, without indexes of list items."""
    yield from _changes(_content(before), _content(after), "")


def _content(body: JsonObject) -> JsonObject:
    """The body without what servers and controllers write by themselves."""
    metadata = {**get_mapping(body, "metadata")}
    notes = {**get_mapping(metadata, "annotations")}
    notes.pop(REVISION, None)
    kept = {name: metadata[name] for name in metadata if name not in SERVERS_OWN}
    kept |= {"annotations": notes or None}
    return {name: body[name] for name in body if name != "status"} | {"metadata": kept}


def _changes(before: Json, after: Json, path: str) -> Iterator[str]:
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            shown = f"{path}[]" if "." in name or "/" in name else f"{path}.{name}"
            yield from _changes(before.get(name), after.get(name), shown.removeprefix("."))
        return
    old, new = _by_key(before), _by_key(after)
    for key in old.keys() & new.keys():
        yield from _changes(old[key], new[key], f"{path}[]")
    if not old or not new or list(old) != list(new):
        yield path


def _by_key(items: Json) -> dict[str, Json]:
    """Items by their keys, in order; empty if they have no keys."""
    mappings = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    for names in (KEYS[:1], KEYS[1:4], KEYS[4:]):
        by_name: dict[str, Json] = {
            " ".join(str(item.get(name)) for name in names): item
            for item in mappings
            if any(name in item for name in names)
        }
        if isinstance(items, list) and len(by_name) == len(items):
            return by_name
    return {}


def is_touched(item: str, other: str) -> bool:
    """Whether a path equals the other or is below it, without indexes of list items."""
    short, long = sorted((ITEM.sub("[]", item), ITEM.sub("[]", other)), key=len)
    return long.startswith(short) and long[len(short) : len(short) + 1] in {"", ".", "["}
