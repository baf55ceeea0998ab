"""ApplicationSets: what they generate, which Applications are in which step, how many at once."""

from __future__ import annotations

import pytest

from tests.acceptance.stage import case
from tests.fakes.set_ladder import Ladder
from tests.unit.dialect.running_sets import Body, Runner, a_set
from tidegate.dialect.argo.sets.applications import Application
from tidegate.dialect.argo.sets.asking import Fault, Known, Language, SetRun
from tidegate.dialect.argo.sets.combined import parameters_of
from tidegate.dialect.argo.sets.rolling import is_taken, limit_of, steps_of
from tidegate.model.objects import Json
from tidegate.model.reading import text

GIT = "https://git.example/shop.git"


def an_application(name: str = "web", **labels: str) -> Application:
    body: Body = {"metadata": {"name": name, "labels": {**labels}}}
    return Application(body=body, path=("spec", "generators", 0), number=1, params={})


def expression(key: str, operator: str, *values: str) -> Json:
    return {"key": key, "operator": operator, "values": [*values]}


@case(67)
@pytest.mark.parametrize(
    ("expressions", "is_in"),
    [
        ([expression("env", "In", "prod"), expression("tier", "In", "a")], True),
        ([expression("env", "In", "prod"), expression("tier", "In", "b")], False),
        ([expression("env", "In", "dev", "prod")], True),
        ([expression("region", "NotIn", "eu")], True),
        ([expression("region", "In", "eu")], False),
        ([expression("env", "In", "prod"), expression("tier", "NotIn", "a")], False),
        ([expression("env", "Exists")], False),
        ([expression("region", "Exists")], True),
        ([], True),
    ],
)
def test_a_step_takes_the_applications_whose_labels_fit_all_its_expressions(
    expressions: list[Json], *, is_in: bool
) -> None:
    step: Json = {"matchExpressions": expressions}

    assert is_taken(step, an_application(env="prod", tier="a")) is is_in


@case(67)
def test_an_application_in_two_steps_belongs_to_the_first_and_one_in_none_is_told() -> None:
    steps: list[Json] = [{"matchExpressions": [expression("env", "In", "prod")]}] * 2
    strategy: Json = {"type": "RollingSync", "rollingSync": {"steps": steps}}

    found, findings = steps_of(
        a_set(strategy=strategy), [an_application(env="prod"), an_application("cart")]
    )

    assert {name: step.number for name, step in found.items()} == {"web": 1, "cart": 0}
    assert [one.sentence for one in findings] == [
        "`web` is in steps 1 and 2",
        "no step takes `cart`",
    ]


@case(68)
def test_a_step_begins_when_all_of_the_one_before_are_well_and_empty_ones_are_passed(
    ladder: Ladder,
) -> None:
    ladder.step(1, "a", "b")
    ladder.step(3, "c")

    times = ladder.play("argocd")

    assert times["c"][0] >= max(times["a"][1], times["b"][1])
    assert times["a"][0] == times["b"][0]


@case(69)
@pytest.mark.parametrize(
    ("most", "count", "limit"),
    [(3, 9, 3), ("50%", 3, 1), (0, 3, 0), ("0%", 3, 0), ("100%", 3, 3), ("1%", 3, 1)],
)
def test_a_limit_is_a_number_or_a_share_that_is_one_at_least(
    most: Json, count: int, limit: int
) -> None:
    assert limit_of(most, count) == limit


@case(69)
def test_units_of_a_step_begin_in_the_order_of_their_names(ladder: Ladder) -> None:
    ladder.step(1, "c", "a", "b", most=1)

    times = ladder.play("argocd")

    assert sorted(times, key=lambda name: times[name][0]) == ["a", "b", "c"]
    assert times["b"][0] >= times["a"][1]


@case(74)
async def test_a_patch_cannot_change_the_project_and_finalizers_are_kept() -> None:
    web: Json = {"list": {"elements": [{"name": "web"}]}}
    patch = "metadata: {finalizers: [background]}\nspec: {project: root}\n"

    found = await Runner().generated(a_set(web, templatePatch=patch))

    (one,) = found.applications
    assert text(one.body, "spec", "project") == "default"
    assert one.body["metadata"] == {
        "name": "web",
        "namespace": "argocd",
        "finalizers": ["background", "resources-finalizer.argocd.argoproj.io"],
    }


@case(75)
async def test_a_matrix_has_two_and_a_merge_keeps_what_the_first_finds() -> None:
    run = SetRun(Known(), Language())
    lists: list[Json] = [
        {"list": {"elements": [{"a": "1_1", "b": "same", "c": "1_3"}]}},
        {"list": {"elements": [{"a": "2_1", "b": "same"}]}},
        {"list": {"elements": [{"b": "different"}]}},
    ]
    merge: Body = {"merge": {"mergeKeys": ["b"], "generators": lists}}

    ((_, found),) = await Runner().run(parameters_of(merge, run))

    assert found == [{"a": "2_1", "b": "same", "c": "1_3"}]
    for wrong in (lists[:1], lists, lists[:2]):
        with pytest.raises(Fault):
            await Runner().run(parameters_of({"matrix": {"generators": wrong}}, run))


@case(76)
async def test_an_empty_file_has_its_place_alone() -> None:
    path = "path/dir/file_name.yaml"
    entry: Body = {"git": {"repoURL": GIT, "files": [{"path": path}]}}

    ((_, found),) = await Runner({path: ""}).run(parameters_of(entry, SetRun(Known(), Language())))

    (one,) = found
    names = ("path", "path.basename", "path.filename", "path.filenameNormalized", "path[1]")
    assert [one[name] for name in names] == [
        "path/dir",
        "dir",
        "file_name.yaml",
        "file-name.yaml",
        "dir",
    ]
