"""Maps of strings in built-in objects are read as a real server reads them.

An apply has the same result as a create of the same object, is rejected if the create would be, and
is unchanged afterwards.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plane import ControlPlane
from tests.e2e.schema_bodies import CONFIG_MAP, DEPLOYMENT, SECRET, SERVICE, an_object
from tests.e2e.test_schemas import BATCH, UNCONVERTED, UNTYPED, answers, kind_of, tries
from tests.support.builders import make_plan_from
from tests.support.cluster_client import require_body
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.plans.change import DiffAction
from tidegate.model.plans.plan import step_items
from tidegate.plan.diff.compare import compare
from tidegate.schema.violations import find_schema_violations
from tidegate.world.messages import Outcome, Success, is_error
from tidegate.world.requests import Verb

pytestmark = pytest.mark.kube


def a_config_map(values: Json, **metadata: Json) -> JsonObject:
    body = an_object(CONFIG_MAP, data=values)
    return {**body, "metadata": {"name": "x", **metadata}}


def a_deployment(labels: Json, **pod: Json) -> JsonObject:
    spec: JsonObject = {"containers": [{"name": "app", "image": "i:1"}], **pod}
    template: JsonObject = {"metadata": {"labels": labels}, "spec": spec}
    return an_object(DEPLOYMENT, spec={"selector": {"matchLabels": labels}, "template": template})


PLACES: dict[str, Callable[[Json], JsonObject]] = {
    "annotations": lambda result: a_config_map({}, annotations=result),
    "binaryData": lambda result: an_object(CONFIG_MAP, binaryData=result),
    "data of a ConfigMap": a_config_map,
    "data of a Secret": lambda result: an_object(SECRET, data=result),
    "labels": lambda result: a_config_map({}, labels=result),
    "matchLabels": a_deployment,
    "nodeSelector": lambda result: a_deployment({"a": "b"}, nodeSelector=result),
    "selector of a Service": lambda result: an_object(
        SERVICE, spec={"selector": result, "ports": [{"port": 80}]}
    ),
    "stringData": lambda result: an_object(SECRET, stringData=result),
    "stringData beside data": lambda result: an_object(
        SECRET, stringData=result, data={"a": "YQ==", "z": "YWJj\nZGVm"}
    ),
}
TEXTS = st.sampled_from(["", "a", "0", "true", "null", "YQ==", "YWJj\nZGVm", "YW Jj", "é"])
ODD = st.sampled_from([0, 1, 1.5, True, False, [], [1, "a"], {}, {"a": "b"}])
VALUES = st.one_of(TEXTS, TEXTS, st.none(), ODD)
MAPS = st.one_of(
    st.dictionaries(st.sampled_from("abc"), TEXTS | st.none(), min_size=1),
    st.dictionaries(st.sampled_from("abc"), VALUES, min_size=1),
    st.none(),
    st.just({}),
    ODD,
    TEXTS,
)
BODIES = st.builds(lambda make, result: make(result), st.sampled_from([*PLACES.values()]), MAPS)


def applied(body: JsonObject) -> JsonObject:
    """What a plan applies of an object."""
    (step,) = make_plan_from(body).steps
    (item,) = step_items(step)
    document: JsonObject = msgspec.json.decode(item.body)
    return document


def is_unread(outcome: Outcome) -> bool:
    """Whether the server could not make an object of its kind of it."""
    result = outcome.message if is_error(outcome) else ""
    return UNTYPED in result or UNCONVERTED in result


def stored(outcome: Success) -> JsonObject:
    """What the server would keep, but for what is new each time."""
    body = require_body(outcome)
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    kept = {name: metadata.get(name) for name in ("labels", "annotations")}
    return {**body, "metadata": kept}


@tries
@given(st.lists(BODIES, min_size=BATCH, max_size=BATCH))
def test_maps_of_strings_are_stored_as_written(
    plane: ControlPlane, batch: list[JsonObject]
) -> None:
    ours = [applied(body) for body in batch]
    outcomes = answers(plane, Verb.APPLY, *batch, *ours)

    for body, mine, theirs, its in zip(batch, ours, outcomes, outcomes[BATCH:], strict=False):
        assert is_unread(theirs) == is_unread(its), (body, theirs, its)
        misfit = find_schema_violations(kind_of(body), mine)
        assert misfit is not None
        assert bool(misfit.unreadable) == is_unread(theirs), (body, misfit, theirs)
        assert not (misfit.invalid and isinstance(theirs, Success)), (body, misfit)
        assert isinstance(theirs, Success) == isinstance(its, Success), (body, theirs, its)
        if isinstance(theirs, Success) and isinstance(its, Success):
            assert stored(theirs) == stored(its), body
            live = require_body(its)
            assert compare(mine, live, manager="tester").action is DiffAction.KEEP, (body, live)
