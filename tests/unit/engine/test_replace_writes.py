"""Writing an object as a whole, against others who write at the same time."""

from __future__ import annotations

import msgspec

from tests.support.builders import make_config_map, make_manifest, make_unit_id
from tidegate.clusters.evaluator import DefaultEvaluator
from tidegate.engine.cluster.procedures import ApiCall, Procedure
from tidegate.engine.cluster.writes import REPLACE_TRIES, apply_object
from tidegate.health.judge import Judge
from tidegate.model.k8s.objects import ClusterRef, LiveObject, parse_live_object
from tidegate.model.plans.plan import PlanItem, PlannedUnit
from tidegate.model.units.policy import ObjectOptions
from tidegate.world.messages import AlreadyExists, Conflict, Forbidden, NotFound, Outcome, Success
from tidegate.world.requests import Get, Request, Verb, Write

UNIT = PlannedUnit(id=make_unit_id("shop"))
MANIFEST = make_manifest(make_config_map(color="red"))
ITEM = PlanItem(ref=MANIFEST.ref, body=MANIFEST.body, options=ObjectOptions(replace=True))
OVERTAKEN = Conflict("the object has been modified")


def a_life(version: str) -> LiveObject:
    body = make_config_map(color="green")
    metadata = {"name": "settings", "namespace": "default", "uid": "1"}
    result = {**body, "metadata": {**metadata, "resourceVersion": version}}
    return parse_live_object(msgspec.json.encode(result))


class ProcedureRun:
    """A procedure that is answered by a test."""

    def __init__(self, live: LiveObject | None) -> None:
        evaluator, cluster_ref = DefaultEvaluator(Judge.from_rows(())), ClusterRef("", ITEM.ref)
        self._procedure: Procedure[Outcome] = apply_object(
            cluster_ref, ITEM, UNIT, live=live, evaluator=evaluator, urgent=True
        )
        self.request = self._request(next(self._procedure))
        self.outcome: Outcome | None = None

    def answer(self, outcome: Outcome) -> None:
        try:
            self.request = self._request(self._procedure.send((outcome,)))
        except StopIteration as end:
            self.outcome = end.value

    def _request(self, call: object) -> Request:
        assert isinstance(call, tuple)
        (ask,) = call
        assert isinstance(ask, ApiCall)
        return ask.request


def list_results(request: Request) -> tuple[Verb, str, str]:
    assert isinstance(request, Write)
    return request.verb, request.resource_version, request.manager


def test_a_missing_object_is_created() -> None:
    procedure_run = ProcedureRun(None)

    assert list_results(procedure_run.request) == (Verb.CREATE, "", "tidegate")


def test_a_live_object_is_replaced_with_its_known_version() -> None:
    procedure_run = ProcedureRun(a_life("7"))

    assert list_results(procedure_run.request) == (Verb.REPLACE, "7", "tidegate")


def test_an_object_changed_by_another_client_is_read_and_replaced() -> None:
    procedure_run = ProcedureRun(a_life("7"))

    procedure_run.answer(OVERTAKEN)
    read = procedure_run.request
    procedure_run.answer(Success(a_life("8")))
    again = procedure_run.request
    procedure_run.answer(Success(a_life("9")))

    assert isinstance(read, Get)
    assert list_results(again) == (Verb.REPLACE, "8", "tidegate")
    assert procedure_run.outcome == Success(a_life("9"))


def test_an_object_created_by_another_client_is_replaced() -> None:
    procedure_run = ProcedureRun(None)

    procedure_run.answer(AlreadyExists("it is there"))
    procedure_run.answer(Success(a_life("8")))

    assert list_results(procedure_run.request) == (Verb.REPLACE, "8", "tidegate")


def test_an_object_deleted_by_another_client_is_created() -> None:
    procedure_run = ProcedureRun(a_life("7"))

    procedure_run.answer(NotFound("it is gone"))
    procedure_run.answer(NotFound("it is gone"))

    assert list_results(procedure_run.request) == (Verb.CREATE, "", "tidegate")


def test_repeated_conflicts_end_the_replacement() -> None:
    procedure_run = ProcedureRun(a_life("1"))

    for version in range(2, REPLACE_TRIES + 1):
        procedure_run.answer(OVERTAKEN)
        procedure_run.answer(Success(a_life(str(version))))
    procedure_run.answer(OVERTAKEN)

    assert procedure_run.outcome == OVERTAKEN


def test_a_rejected_replacement_is_not_retried() -> None:
    procedure_run = ProcedureRun(a_life("7"))

    procedure_run.answer(Forbidden("you may not"))

    assert procedure_run.outcome == Forbidden("you may not")
