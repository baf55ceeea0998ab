"""ApplicationSets: what they generate, which Applications are in which step, how many at once."""

from __future__ import annotations

from itertools import groupby

import msgspec
import pytest

from tests.conformance.argocd.stage import case
from tests.support.appset_runner import Runner, a_set
from tests.support.recorded_wording import RecordedWording
from tests.support.rolling_appset import Ladder
from tests.support.sessions import a_session
from tests.support.tidegate_runs import tidegate
from tidegate.actions.delete import plan_deletions
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.dialect.argo.appset.applications import GeneratedApplication
from tidegate.dialect.argo.appset.combined_generators import generate_parameters
from tidegate.dialect.argo.appset.policies import (
    OVERRIDE_SETTING,
    POLICY_SETTING,
    ApplicationSetPolicy,
    effective_policy,
)
from tidegate.dialect.argo.appset.queries import (
    GeneratorContext,
    GeneratorError,
    GeneratorInputs,
    TemplateLanguage,
)
from tidegate.dialect.argo.appset.rolling_sync import matches_step, max_update_limit, rollout_steps
from tidegate.engine.driver import drive
from tidegate.model.k8s.json_fields import get_int, get_text
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.rollouts.event import Event, EventType
from tidegate.model.times import SECOND, Ms
from tidegate.model.units.semantics import ARGOCD, TIDEGATE
from tidegate.planning.preparation import prepare_plan
from tidegate.rollout.run import RolloutOptions, build_driver
from tidegate.workspace.rendering.context import user_render_settings
from tidegate.workspace.request import LoadRequest
from tidegate.workspace.workspace import load_without_cluster
from tidegate.world.protocol import World

GIT = "https://git.example/shop.git"


def an_application(name: str = "web", **labels: str) -> GeneratedApplication:
    body: JsonObject = {"metadata": {"name": name, "labels": {**labels}}}
    return GeneratedApplication(body=body, path=("spec", "generators", 0), number=1, params={})


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
def test_a_step_selects_applications_that_match_all_its_expressions(
    expressions: list[Json], *, is_in: bool
) -> None:
    step: Json = {"matchExpressions": expressions}

    assert matches_step(step, an_application(env="prod", tier="a")) is is_in


@case(67)
def test_an_application_in_two_steps_belongs_to_the_first_and_one_in_none_is_reported(
    wording: RecordedWording,
) -> None:
    steps: list[Json] = [{"matchExpressions": [expression("env", "In", "prod")]}] * 2
    strategy: Json = {"type": "RollingSync", "rollingSync": {"steps": steps}}

    result, findings = rollout_steps(
        a_set(strategy=strategy), [an_application(env="prod"), an_application("cart")]
    )

    assert {name: step.number for name, step in result.items()} == {"web": 1, "cart": 0}
    wording(finding.message for finding in findings)


@case(68)
def test_a_step_starts_when_the_previous_one_is_healthy_and_empty_steps_are_skipped(
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
    [
        (3, 9, 3),
        ("50%", 3, 1),
        (0, 3, 0),
        ("0%", 3, 0),
        ("100%", 3, 3),
        ("1%", 3, 1),
        ("+50%", 4, 2),
    ],
)
def test_max_update_is_a_number_or_a_percentage_of_at_least_one(
    most: Json, count: int, limit: int
) -> None:
    assert max_update_limit(most, count) == limit


@case(69)
def test_units_of_a_step_start_in_the_order_of_their_names(ladder: Ladder) -> None:
    ladder.step(1, "c", "a", "b", most=1)

    times = ladder.play("argocd")

    assert sorted(times, key=lambda name: times[name][0]) == ["a", "b", "c"]
    assert times["b"][0] >= times["a"][1]


def played(ladder: Ladder, scenario: Json = None, *words: str) -> list[dict[str, Json]]:
    """What Argo CD would do, in a cluster that begins like this."""
    file = ladder.folder.parent / f"{ladder.folder.name}-scenario.json"
    file.write_bytes(msgspec.json.encode(scenario or {}))
    ran = ladder.run("simulate", "--engine", "argocd", "-o", "json", "--scenario", file, *words)
    return [msgspec.json.decode(line) for line in ran.stdout.splitlines()]


def written(events: list[dict[str, Json]]) -> dict[str, int]:
    """By name, the second in which an object was written first."""
    result: dict[str, int] = {}
    for event in events:
        if event.get("event") == "object.written":
            moment = get_int(event, "at") - get_int(events[0], "at")
            result.setdefault(get_text(event, "name"), moment // 1000)
    return result


async def rolled(ladder: Ladder, world: World, within: int | None = None) -> dict[str, Ms]:
    """By name, when the objects were written that Argo CD writes in this cluster as it is now."""
    session, setting = a_session(world), user_render_settings(offline=True)
    without_cluster = await load_without_cluster(
        LoadRequest(path_or_url=str(ladder.write())), setting
    )
    plan = (await prepare_plan(without_cluster.deployable_trees, session, semantics=ARGOCD)).plan
    events: list[Event] = []
    driver = build_driver(plan, session, RolloutOptions(holder="argocd"), events.append)
    await drive(driver, until=None if within is None else Ms(world.now() + within))
    assert within is not None or driver.result == "passed"
    wrote = [event for event in events if event.type is EventType.OBJECT_WRITTEN]
    return {item.ref.name: item.at for item in reversed(wrote) if item.ref}


def behaviour(name: str, effect: str, **more: Json) -> Json:
    return {"effect": effect, "when": {"name": name}, **more}


@case(70)
async def test_an_application_in_sync_is_not_synced_but_awaited_until_healthy(
    ladder: Ladder,
) -> None:
    ladder.step(1, "a")
    ladder.step(2, "b")
    world = build_sandbox(SimulationConfig())
    first = await rolled(ladder, world, within=1500)

    second, third = await rolled(ladder, world), await rolled(ladder, world)

    assert (set(first), set(second), third) == ({"a"}, {"b"}, {})
    assert second["b"] > first["a"] + 2 * SECOND, "until then it is not healthy"


@case(70)
async def test_a_changed_application_is_synced_in_its_step(ladder: Ladder) -> None:
    ladder.step(1, "a")
    ladder.step(2, "b", "c")
    world = build_sandbox(SimulationConfig())
    await rolled(ladder, world)
    for name in ("a", "c"):
        file = ladder.folder / "apps" / name / "web.yaml"
        file.write_text(file.read_text().replace(":1", ":2"))

    second = await rolled(ladder, world)

    assert set(second) == {"a", "c"}
    assert second["c"] > second["a"] + 2 * SECOND


@case(70)
def test_a_degraded_application_blocks_its_step_and_counts_for_its_limit(
    ladder: Ladder,
) -> None:
    ladder.step(1, "a", "b", most=1)
    ladder.step(2, "c")
    never: Json = {"behaviours": [behaviour("a", "never-ready")]}

    events = played(ladder, never, "--until", "5h")

    assert set(written(events)) == {"a"}
    assert events[-2]["reason"] == "stopped"


@case(70)
def test_the_next_step_starts_when_a_degraded_application_recovers(ladder: Ladder) -> None:
    ladder.step(1, "a")
    ladder.step(2, "b")

    events = played(ladder, {"behaviours": [behaviour("a", "unpullable", **{"for": "30m"})]})

    degraded = [event["reason"] for event in events if event.get("event") == "gate.waiting"]
    assert "ProgressDeadlineExceeded" in degraded
    assert events[-2]["reason"] == "passed"
    assert written(events)["b"] >= 30 * 60


@case(70)
def test_a_failed_sync_blocks_all_later_steps(ladder: Ladder) -> None:
    ladder.step(1, "a")
    ladder.step(2, "b")
    refused: Json = {"faults": [{"effect": "error", "when": {"name": "a", "verb": ["apply"]}}]}

    events = played(ladder, refused)

    assert written(events) == {}


@case(71)
@pytest.mark.parametrize(("policy", "tries"), [("", 5), (", retry: {limit: 2}", 2)])
def test_a_failed_sync_of_a_step_is_retried_as_often_as_in_argo_cd(
    ladder: Ladder, policy: str, tries: int
) -> None:
    ladder.step(1, "a")
    ladder.sync = f"automated: {{}}{policy}"
    refused: Json = {"faults": [{"effect": "error", "when": {"name": "a", "verb": ["apply"]}}]}

    events = played(ladder, refused)

    assert len([event for event in events if event.get("event") == "retry.scheduled"]) == tries


async def deleted(ladder: Ladder, world: World) -> list[list[str]]:
    """The objects of units in the order in which they went; those at the same time together."""
    session = a_session(world)
    without_cluster = await load_without_cluster(
        LoadRequest(path_or_url=str(ladder.write())), user_render_settings(offline=True)
    )
    plan = (await prepare_plan(without_cluster.deployable_trees, session, semantics=TIDEGATE)).plan
    await drive(build_driver(plan, session, RolloutOptions(holder="brings"), lambda _: None))
    end, events = (await plan_deletions(session, without_cluster)).plan, list[Event]()
    await drive(build_driver(end, session, RolloutOptions(holder="deletes"), events.append))
    gone = [event for event in events if event.type is EventType.OBJECT_PRUNED and event.ref]
    assert events[-1].reason == "passed"
    return [
        [item.ref.name for item in same if item.ref]
        for _, same in groupby(gone, key=lambda item: item.at)
    ]


@case(72)
async def test_applications_are_deleted_from_the_last_step_to_the_first_one_by_one(
    ladder: Ladder,
) -> None:
    ladder.step(1, "dev")
    ladder.step(2, "stage-a", "stage-b")
    ladder.step(3, "prod")
    ladder.order = "deletionOrder: reverse"

    gone = await deleted(ladder, build_sandbox(SimulationConfig()))

    assert gone == [["prod"], ["stage-a"], ["stage-b"], ["dev"]]


@case(72)
async def test_without_steps_the_order_of_deletion_is_ignored(ladder: Ladder) -> None:
    ladder.step(1, "dev")
    ladder.step(2, "prod")
    ladder.order = "deletionOrder: Reverse"
    file = ladder.write() / "set.yaml"
    file.write_text(file.read_text().replace("type: RollingSync", "type: AllAtOnce"))

    ran = tidegate("units", ladder.folder, "--offline")

    assert "warning[appset.strategy]: " in ran.stderr
    assert "(spec.strategy.deletionOrder)" in ran.stderr


@case(73)
@pytest.mark.parametrize(
    ("policy", "updates", "deletes"),
    [
        ("create-only", False, False),
        ("create-update", True, False),
        ("create-delete", False, True),
        ("sync", True, True),
    ],
)
def test_applications_sync_policy_limits_what_a_set_does_to_applications(
    policy: str, *, updates: bool, deletes: bool
) -> None:
    item = a_set(syncPolicy={"applicationsSync": policy})

    assert effective_policy(item, {}) == ApplicationSetPolicy(updates, deletes)
    assert effective_policy(item, {POLICY_SETTING: "sync"}) == ApplicationSetPolicy()
    assert effective_policy(
        item, {POLICY_SETTING: "sync", OVERRIDE_SETTING: "true"}
    ) == ApplicationSetPolicy(updates, deletes)


@case(74)
async def test_a_patch_cannot_change_the_project_and_finalizers_are_kept() -> None:
    web: Json = {"list": {"elements": [{"name": "web"}]}}
    patch = "metadata: {finalizers: [background]}\nspec: {project: root}\n"

    result = await Runner().generated(a_set(web, templatePatch=patch))

    (application,) = result.applications
    assert get_text(application.body, "spec", "project") == "default"
    assert application.body["metadata"] == {
        "name": "web",
        "namespace": "argocd",
        "finalizers": ["background", "resources-finalizer.argocd.argoproj.io"],
    }


@case(75)
async def test_a_matrix_combines_two_generators_and_a_merge_keeps_the_items_of_the_first() -> None:
    run = GeneratorContext(GeneratorInputs(), TemplateLanguage())
    lists: list[Json] = [
        {"list": {"elements": [{"a": "1_1", "b": "same", "c": "1_3"}]}},
        {"list": {"elements": [{"a": "2_1", "b": "same"}]}},
        {"list": {"elements": [{"b": "different"}]}},
    ]
    merge: JsonObject = {"merge": {"mergeKeys": ["b"], "generators": lists}}

    ((_, result),) = await Runner().run(generate_parameters(merge, run))

    assert result == [{"a": "2_1", "b": "same", "c": "1_3"}]
    for wrong in (lists[:1], lists, lists[:2]):
        with pytest.raises(GeneratorError):
            await Runner().run(generate_parameters({"matrix": {"generators": wrong}}, run))


@case(76)
async def test_an_empty_file_generates_one_item_with_its_path_only() -> None:
    path = "path/dir/file_name.yaml"
    entry: JsonObject = {"git": {"repoURL": GIT, "files": [{"path": path}]}}

    ((_, result),) = await Runner({path: ""}).run(
        generate_parameters(entry, GeneratorContext(GeneratorInputs(), TemplateLanguage()))
    )

    (item,) = result
    names = ("path", "path.basename", "path.filename", "path.filenameNormalized", "path[1]")
    assert [item[name] for name in names] == [
        "path/dir",
        "dir",
        "file_name.yaml",
        "file-name.yaml",
        "dir",
    ]
