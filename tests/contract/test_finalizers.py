"""Promises about the names of finalizers: who asks for a slash in them, and who does not."""

from __future__ import annotations

from tests.contract.test_definitions import a_served_gate, group_of
from tests.support.cluster_client import ClusterClient, require_live
from tests.support.objects import a_config_map, a_definition, a_gate, held
from tidegate.world.messages import Invalid, Success

BARE = "gate.example.org"


async def test_kinds_of_kubernetes_want_a_slash_in_the_name_of_a_finalizer(
    client: ClusterClient,
) -> None:
    outcome = await client.create(held(a_config_map(), BARE))

    assert isinstance(outcome, Invalid)
    assert [cause.field for cause in outcome.causes] == ["metadata.finalizers[0]"]


async def test_custom_kinds_do_not(client: ClusterClient) -> None:
    kind = await a_served_gate(client)

    made = require_live(await client.create(held(a_gate(kind.group), BARE)))
    changed = await client.patch(made.ref, {"spec": {"size": 3}})

    await client.patch(made.ref, {"metadata": {"finalizers": None}})
    assert isinstance(changed, Success)


async def test_neither_do_definitions(client: ClusterClient) -> None:
    definition = a_definition(group_of(client))

    made = require_live(await client.create(held(definition, BARE)))
    changed = await client.patch(made.ref, {"metadata": {"labels": {"team": "north"}}})

    await client.patch(made.ref, {"metadata": {"finalizers": None}})
    assert isinstance(changed, Success)
