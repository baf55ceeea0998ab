"""Making what an operator produces: create what is missing, add what an object lacks.

What stands there already is left alone: a Secret that somebody filled keeps its values.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable

import msgspec

from tidegate.model.objects import Json, Kind, Ref
from tidegate.sandbox.controllers.reaction import At, View
from tidegate.sandbox.controllers.writes import owner_reference
from tidegate.sandbox.operators.references import MAKER, Made
from tidegate.sandbox.server.store import Body, Stored, metadata_of
from tidegate.world.calls import Verb, Write
from tidegate.world.facts import Outcome, is_refusal

Making = Generator[Write | At, Outcome | None, bool]


def make(view: View, maker: Stored, products: Iterable[Made]) -> Making:
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


def _write_of(view: View, maker: Stored, made: Made) -> Write | None:
    ref = _ref_of(made.body)
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


def _ref_of(body: Body) -> Ref:
    metadata = metadata_of(body)
    kind = Kind.of(str(body.get("apiVersion")), str(body.get("kind")))
    return Ref(kind, str(metadata.get("namespace") or ""), str(metadata.get("name")))


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
