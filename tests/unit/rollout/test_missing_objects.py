"""What an object that failed needs and is not there, and who in the plan would make it."""

from __future__ import annotations

from collections.abc import Iterable

from tests.support.builders import make_config_map, make_object, make_plan_from
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.recorded_wording import RecordedWording
from tidegate.clusters.sandboxes import SimulationConfig, build_sandbox
from tidegate.knowledge.catalog import KindCatalog
from tidegate.knowledge.reader import load_builtin_knowledge
from tidegate.model.k8s.objects import ClusterRef, Json, JsonObject, Kind, Ref
from tidegate.model.plans.plan import Plan
from tidegate.model.rollouts.evidence import Evidence, StepRelation
from tidegate.rollout.diagnosis import DiagnosisContext, collect_evidence
from tidegate.world.dispatcher import Dispatcher
from tidegate.world.protocol import World
from tidegate.world.resilient import ResilientWorld

JOB = Ref(Kind("batch", "v1", "Job"), "default", "migrate")
DATABASE_KIND = Kind("kinda.rocks", "v1beta1", "Database")


def a_database(name: str = "shop-db") -> JsonObject:
    spec: JsonObject = {"secretName": "shop-login", "instance": "main"}
    return make_object("kinda.rocks/v1beta1 Database", name, spec=spec)


def a_job(pod: JsonObject) -> JsonObject:
    container: Json = {"name": "app", "image": "app:1", **pod}
    spec: Json = {"restartPolicy": "Never", "containers": [container]}
    return make_object("batch/v1 Job", "migrate", spec={"template": {"spec": spec}})


def reads(kind: str, name: str, *, optional: bool = False) -> JsonObject:
    return {"envFrom": [{kind: {"name": name, "optional": optional}}]}


async def read_result(plan: Plan, ref: Ref = JOB, *, there: Iterable[JsonObject] = ()) -> Evidence:
    world = await world_with(there)
    known = KindCatalog.from_rows(load_builtin_knowledge().rows)
    background = DiagnosisContext(plan=plan, catalogue=known, raw_world=world)
    (result,) = await collect_evidence(Dispatcher(world), [ClusterRef("", ref)], background)
    return result


async def world_with(bodies: Iterable[JsonObject]) -> World:
    world = build_sandbox(SimulationConfig())
    for body in bodies:
        require_live(await ClusterClient(Dispatcher(ResilientWorld(world))).apply(body))
    return world


def list_results(result: Evidence) -> list[tuple[str, list[tuple[str, StepRelation]]]]:
    return [
        (str(missing.ref), [(str(maker.ref), maker.relation) for maker in missing.producers])
        for missing in result.missing
    ]


async def test_a_secret_that_an_operator_would_make_later_has_its_maker() -> None:
    job = a_job(reads("secretRef", "shop-login"))

    result = await read_result(make_plan_from(job, a_database()), there=[job])

    assert list_results(result) == [
        ("Secret default/shop-login", [("Database default/shop-db", StepRelation.AFTER)])
    ]


async def test_an_object_of_the_plan_is_its_own_producer() -> None:
    job = a_job(reads("configMapRef", "settings"))
    settings = make_config_map("settings")

    later = await read_result(make_plan_from(job, settings), there=[job])
    producers = await read_result(make_plan_from((job, settings)), there=[job])
    before = await read_result(make_plan_from(settings, job), there=[job])

    name = "ConfigMap default/settings"
    assert [list_results(item) for item in (later, producers, before)] == [
        [(name, [(name, StepRelation.AFTER)])],
        [(name, [(name, StepRelation.SAME_STEP)])],
        [(name, [(name, StepRelation.BEFORE)])],
    ]


async def test_an_object_that_nothing_creates_has_no_producer() -> None:
    job = a_job(reads("secretRef", "elsewhere"))

    result = await read_result(make_plan_from(job, a_database()), there=[job])

    assert list_results(result) == [("Secret default/elsewhere", [])]


async def test_existing_and_optional_objects_are_not_missing() -> None:
    settings = make_config_map("settings")
    job = a_job(reads("configMapRef", "settings"))
    careless = a_job(reads("secretRef", "anything", optional=True))

    served = await read_result(make_plan_from(job), there=[settings, job])
    content = await read_result(make_plan_from(careless), there=[careless])

    assert list_results(served) == list_results(content) == []


async def test_accounts_and_volumes_of_pods_are_needed_too() -> None:
    pod: JsonObject = {
        "serviceAccountName": "migrator",
        "volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "files"}}],
        "containers": [{"name": "app", "image": "app:1"}],
        "restartPolicy": "Never",
    }
    job = make_object("batch/v1 Job", "migrate", spec={"template": {"spec": pod}})

    result = await read_result(make_plan_from(job), there=[job])

    assert [name for name, _ in list_results(result)] == [
        "ServiceAccount default/migrator",
        "PersistentVolumeClaim default/files",
    ]


async def test_a_deleted_hook_is_known_from_the_plan() -> None:
    job = a_job(reads("secretRef", "shop-login"))

    result = await read_result(make_plan_from(job, a_database()))

    assert [name for name, _ in list_results(result)] == ["Secret default/shop-login"]


async def test_missing_dependencies_of_an_operator_count_for_its_objects() -> None:
    ref = Ref(DATABASE_KIND, "default", "shop-db")

    result = await read_result(make_plan_from(a_database()), ref)

    assert list_results(result) == [("DbInstance main", [])]


async def test_a_late_producer_has_its_own_missing_dependencies() -> None:
    job = a_job(reads("secretRef", "shop-login"))

    result = await read_result(make_plan_from(a_database(), job), there=[job])

    assert list_results(result) == [
        ("Secret default/shop-login", [("Database default/shop-db", StepRelation.BEFORE)]),
        ("DbInstance main", []),
    ]


async def test_a_kind_without_its_operator_in_a_simulated_cluster_is_explained(
    wording: RecordedWording,
) -> None:
    ref = Ref(DATABASE_KIND, "default", "shop-db")

    result = await read_result(make_plan_from(a_database()), ref)

    wording(result.not_served_reason)
