"""Making what an operator produces: create what is missing, add what an object lacks.

What stands there already is left alone: a Secret that somebody filled keeps its values.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator

import msgspec

from tidegate.knowledge.references import Made, products_of
from tidegate.knowledge.settings import OPEN_KEYS, SIMULATED_MARK
from tidegate.model.objects import Json, Ref
from tidegate.model.operators import Row
from tidegate.model.reading import mapping
from tidegate.sandbox.controllers.reaction import At, Visible
from tidegate.sandbox.controllers.writes import owner_reference
from tidegate.sandbox.kinds import SERVICE_NAME
from tidegate.sandbox.server.store import Body, Stored, metadata_of, ref_of
from tidegate.world.calls import Verb, Write
from tidegate.world.facts import Outcome, is_refusal

Making = Generator[Write | At, Outcome | None, bool]
NAMED = "sandbox.tidegate.dev/named"
"""On objects that are given by their names: nobody knows what they hold."""
MAKER = "simulated-operator"
ADDRESS = "192.0.2.1"
"""An address that is set aside for documents: nobody has it."""


def played(
    row: Row, scope: Body, upto: int | None = None, *, opens: bool = False
) -> Iterator[Made]:
    """What an object of a row has produced at a stage, marked as simulated.

    Where it is ready, with the endpoints of its Services: their pods are not played. What it
    `opens` has keys that nobody can know.
    """
    is_ready = upto is None or upto == len(row.stages) - 1
    for made in products_of(row, scope, upto):
        yield made._replace(body=_marked(made.body, OPEN_KEYS if opens else ""))
        if made.answers and is_ready:
            yield Made(_marked(endpoints_of(made.body)), owned=True)


def _marked(body: Body, further: str = "") -> Body:
    metadata = metadata_of(body)
    notes: Body = {**mapping(metadata, "annotations"), SIMULATED_MARK: "true"}
    if further:
        notes[further] = "true"
    return {**body, "metadata": {**metadata, "annotations": notes}}


def endpoints_of(service: Body) -> Body:
    """An endpoint for a Service whose pods are not played."""
    metadata = metadata_of(service)
    labels: Body = {
        SERVICE_NAME: metadata["name"],
        "endpointslice.kubernetes.io/managed-by": MAKER,
    }
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**metadata, "name": f"{metadata['name']}-simulated", "labels": labels},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [ADDRESS], "conditions": {"ready": True, "serving": True}}],
        "ports": mapping(service, "spec")["ports"],
    }


def make(view: Visible, maker: Stored, products: Iterable[Made]) -> Making:
    """Make these; tells whether a server refused one.

    Of two that are the same object the first is made; the second adds what it lacks, as soon as it
    is seen.
    """
    refused = False
    begun: set[Ref] = set()
    for made in products:
        write = _write_of(view, maker, made)
        if write is None or (write.verb is Verb.CREATE and write.ref in begun):
            continue
        begun.add(write.ref)
        outcome = yield write
        refused = refused or (outcome is not None and is_refusal(outcome))
    return refused


def _write_of(view: Visible, maker: Stored, made: Made) -> Write | None:
    ref = ref_of(made.body)
    live = view.get(ref)
    if live is None:
        body = _owned(made.body, maker) if made.owned else made.body
        return Write(verb=Verb.CREATE, ref=ref, body=msgspec.json.encode(body), manager=MAKER)
    wanted: Body = {key: made.body[key] for key in ("data", "spec") if key in made.body}
    lacking = _lacking(wanted, _kept(live.body))
    if not lacking or live.is_deleting:
        return None
    patch = msgspec.json.encode(lacking)
    return Write(verb=Verb.PATCH, ref=ref, body=patch, uid=live.uid, manager=MAKER)


def _owned(body: Body, maker: Stored) -> Body:
    """With its maker as its owner, where owners are allowed: not across namespaces."""
    metadata = metadata_of(body)
    if maker.ref.namespace and metadata.get("namespace") != maker.ref.namespace:
        return body
    return {**body, "metadata": {**metadata, "ownerReferences": [owner_reference(maker)]}}


def _kept(body: Body) -> Body:
    """A body with the texts of a Secret among its values, wherever a server keeps them."""
    texts, data = body.get("stringData"), body.get("data")
    if not isinstance(texts, dict):
        return body
    return {**body, "data": {**(data if isinstance(data, dict) else {}), **texts}}


def _lacking(wanted: Body, actual: Json) -> Body:
    """The part of a mapping that another does not have, as a merge patch."""
    known: Body = actual if isinstance(actual, dict) else {}
    missing: Body = {}
    for key, value in wanted.items():
        if key not in known:
            missing[key] = value
        elif isinstance(value, dict) and (inner := _lacking(value, known[key])):
            missing[key] = inner
    return missing
