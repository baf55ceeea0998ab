"""Promises about deletion: finalizers, preconditions, owners."""

from __future__ import annotations

from tests.support.cluster_client import ClusterClient, require_body, require_live
from tests.support.objects import a_config_map, a_job, at, held, owned_by
from tidegate.model.k8s.objects import JsonObject, LiveObject, Propagation, Ref
from tidegate.world.messages import AlreadyExists, Conflict, NotFound, Success


def is_gone(live: LiveObject | None) -> bool:
    return live is None


async def an_owner_and_its_dependent(
    client: ClusterClient, *, block: bool = False
) -> tuple[Ref, Ref]:
    owner = await client.create(a_config_map("owner"))
    unit_resource = await client.create(
        owned_by(a_config_map("own"), owner=require_body(owner), block=block)
    )
    return require_live(owner).ref, require_live(unit_resource).ref


async def test_a_deleted_object_is_gone(client: ClusterClient) -> None:
    ref = require_live(await client.create(a_config_map())).ref

    outcome = await client.delete(ref)

    assert isinstance(outcome, Success)
    assert isinstance(await client.get(ref), NotFound)


async def test_deleting_a_missing_object_is_not_found(client: ClusterClient) -> None:
    ref = require_live(await client.create(a_config_map())).ref
    await client.delete(ref)

    assert isinstance(await client.delete(ref), NotFound)


async def test_an_object_being_deleted_cannot_be_created_again(client: ClusterClient) -> None:
    ref = require_live(await client.create(held(a_config_map()))).ref
    await client.delete(ref)

    outcome = await client.create(a_config_map())

    await client.patch(ref, {"metadata": {"finalizers": None}})
    message = 'object is being deleted: configmaps "web" already exists'
    assert outcome == AlreadyExists(message)


async def test_a_finalizer_holds_the_object_until_it_is_taken_off(client: ClusterClient) -> None:
    ref = require_live(await client.create(held(a_config_map()))).ref

    await client.delete(ref)
    waiting = await client.get(ref)
    await client.patch(ref, {"metadata": {"finalizers": None}})

    assert at(require_body(waiting), "metadata", "deletionTimestamp")
    assert isinstance(await client.get(ref), NotFound)


async def test_a_deletion_that_is_held_answers_with_the_object(client: ClusterClient) -> None:
    created = require_live(await client.create(held(a_config_map())))

    outcome = await client.delete(created.ref)

    assert require_live(outcome).uid == created.uid
    await client.patch(created.ref, {"metadata": {"finalizers": None}})


async def test_an_object_that_is_being_deleted_takes_no_new_finalizer(
    client: ClusterClient,
) -> None:
    ref = require_live(await client.create(held(a_config_map()))).ref
    await client.delete(ref)

    outcome = await client.patch(
        ref, {"metadata": {"finalizers": ["example.org/hold", "example.org/more"]}}
    )

    assert not isinstance(outcome, Success)
    await client.patch(ref, {"metadata": {"finalizers": None}})


async def test_a_deletion_with_the_uid_of_another_life_is_a_conflict(client: ClusterClient) -> None:
    first = require_live(await client.create(a_config_map()))
    await client.delete(first.ref)
    second = require_live(await client.create(a_config_map()))

    outcome = await client.delete(first.ref, uid=first.uid)

    assert isinstance(outcome, Conflict)
    assert require_live(await client.get(first.ref)).uid == second.uid


async def test_a_deletion_with_a_past_version_is_a_conflict(client: ClusterClient) -> None:
    first = require_live(await client.create(a_config_map()))
    await client.patch(first.ref, {"data": {"color": "red"}})

    outcome = await client.delete(first.ref, resource_version=first.resource_version)

    assert isinstance(outcome, Conflict)


async def test_an_object_made_again_has_another_uid(client: ClusterClient) -> None:
    first = require_live(await client.create(a_config_map()))
    await client.delete(first.ref)

    second = require_live(await client.create(a_config_map()))

    assert second.uid != first.uid


async def test_in_the_background_the_owner_is_deleted_before_its_dependents(
    client: ClusterClient,
) -> None:
    owner, unit_resource = await an_owner_and_its_dependent(client)

    await client.delete(owner, propagation=Propagation.BACKGROUND)

    assert isinstance(await client.get(owner), NotFound)
    assert await client.settled(unit_resource, is_gone) is None


async def test_in_the_foreground_the_owner_is_deleted_after_its_dependents(
    client: ClusterClient,
) -> None:
    owner = await client.create(a_config_map("owner"))
    unit_resource = await client.create(
        owned_by(held(a_config_map("own")), owner=require_body(owner), block=True)
    )
    refs = require_live(owner).ref, require_live(unit_resource).ref

    await client.delete(refs[0], propagation=Propagation.FOREGROUND)
    await client.settled(refs[1], lambda live: b"deletionTimestamp" in (live.body if live else b""))
    waiting: JsonObject = require_body(await client.get(refs[0]))
    await client.patch(refs[1], {"metadata": {"finalizers": None}})

    assert at(waiting, "metadata", "finalizers") == ["foregroundDeletion"]
    assert await client.settled(refs[0], is_gone) is None


async def test_orphans_stay_and_lose_their_owner(client: ClusterClient) -> None:
    owner, unit_resource = await an_owner_and_its_dependent(client)

    await client.delete(owner, propagation=Propagation.ORPHAN)
    await client.settled(owner, is_gone)

    orphan = require_body(await client.get(unit_resource))
    assert at(orphan, "metadata", "ownerReferences") is None


async def test_an_object_whose_owner_never_existed_is_collected(client: ClusterClient) -> None:
    owner = require_body(await client.create(a_config_map("owner")))
    await client.delete(require_live(await client.get(await client.ref(owner))).ref)

    unit_resource = require_live(
        await client.create(owned_by(a_config_map("own"), owner=owner))
    ).ref

    assert await client.settled(unit_resource, is_gone) is None


async def test_a_job_deleted_without_a_propagation_policy_orphans_its_pods(
    client: ClusterClient,
) -> None:
    job = await client.create(a_job(suspend=True))
    unit_resource = require_live(
        await client.create(owned_by(a_config_map("own"), owner=require_body(job)))
    ).ref

    outcome = await client.delete(require_live(job).ref)
    await client.settled(require_live(job).ref, is_gone)

    assert isinstance(outcome, Success)
    assert "child pods are preserved by default" in outcome.warnings[0]
    assert at(require_body(await client.get(unit_resource)), "metadata", "ownerReferences") is None
