"""Objects that two units write at the same time: the second write finds the other owner."""

from __future__ import annotations

import msgspec

from tests.support.builders import make_config_map, make_manifest, make_unit_id
from tidegate.clusters.evaluator import DefaultEvaluator
from tidegate.dialect.ownership.tracking import UNIT
from tidegate.engine.cluster.procedures import ApiCall
from tidegate.engine.cluster.writes import apply_unshared
from tidegate.engine.messages import Failure
from tidegate.health.judge import Judge
from tidegate.model.k8s.objects import ClusterRef, JsonObject, LiveObject, parse_live_object
from tidegate.model.plans.plan import PlanItem, PlannedUnit
from tidegate.world.messages import Conflict, Outcome, Success
from tidegate.world.requests import Get, Request, Verb, Write

SHOP = PlannedUnit(id=make_unit_id("shop"))
MANIFEST = make_manifest(make_config_map(color="red"))
ITEM = PlanItem(ref=MANIFEST.ref, body=MANIFEST.body)


def object_of(owner: str, version: str) -> LiveObject:
    metadata: JsonObject = {
        "name": "settings",
        "namespace": "default",
        "uid": "1",
        "resourceVersion": version,
        "annotations": {UNIT: owner} if owner else {},
    }
    body: JsonObject = {**make_config_map(color="green"), "metadata": metadata}
    return parse_live_object(msgspec.json.encode(body))


class UnsharedWrite:
    """A write that is answered by a test."""

    def __init__(self, live: LiveObject | None) -> None:
        self._procedure = apply_unshared(
            ClusterRef("", ITEM.ref),
            ITEM,
            SHOP,
            live=live,
            evaluator=DefaultEvaluator(Judge.from_rows(())),
            urgent=True,
        )
        self.request = _request_of(next(self._procedure))
        self.result: Outcome | Failure | None = None

    def answer(self, outcome: Outcome) -> None:
        try:
            self.request = _request_of(self._procedure.send((outcome,)))
        except StopIteration as end:
            self.result = end.value


def _request_of(calls: object) -> Request:
    assert isinstance(calls, tuple)
    (call,) = calls
    assert isinstance(call, ApiCall)
    return call.request


def seen_version(request: Request) -> str:
    assert isinstance(request, Write)
    assert request.verb is Verb.APPLY
    return request.resource_version


def test_an_object_that_another_unit_creates_first_is_refused() -> None:
    write = UnsharedWrite(None)
    version = seen_version(write.request)
    write.answer(Conflict("the object has been modified"))
    read = write.request
    write.answer(Success(object_of("default/other", "2")))

    assert version == "1"
    assert isinstance(read, Get)
    assert isinstance(write.result, Failure)
    assert (write.result.reason, write.result.final) == ("Shared", True)
    assert "`default/other`" in write.result.message


def test_an_object_without_an_owner_is_written_in_the_version_that_was_seen() -> None:
    write = UnsharedWrite(object_of("", "7"))
    version = seen_version(write.request)
    write.answer(Conflict("the object has been modified"))
    write.answer(Success(object_of("", "8")))

    assert (version, seen_version(write.request)) == ("7", "8")


def test_an_object_of_the_unit_is_written_in_any_version() -> None:
    write = UnsharedWrite(object_of(SHOP.id.tracking_id, "7"))

    assert seen_version(write.request) == ""
