"""The objects that the status of an Application or a Kustomization lists."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidegate.dialect.flux.status.kustomization import inventory_id
from tidegate.dialect.ownership.inventories import inventory_refs
from tidegate.model.k8s.objects import Json, Kind, Ref

NAMES = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,8}[a-z0-9])?", fullmatch=True)
GROUPS = st.sampled_from(["", "apps", "rbac.authorization.k8s.io", "example.com"])
KINDS = st.builds(Kind, GROUPS, st.sampled_from(["v1", "v1beta1"]), st.just("Thing"))
PLAIN = st.builds(Ref, KINDS, st.one_of(st.just(""), NAMES), NAMES)
ROLES = st.builds(
    lambda first, last: Ref(
        Kind("rbac.authorization.k8s.io", "v1", "ClusterRole"), "", f"{first}:{last}"
    ),
    NAMES,
    NAMES,
)


@given(st.lists(st.one_of(PLAIN, ROLES)))
def test_an_inventory_of_flux_is_read(refs: list[Ref]) -> None:
    entries: list[Json] = [{"id": inventory_id(ref), "v": ref.kind.version} for ref in refs]

    unit_resource: dict[str, Json] = {
        "kind": "Kustomization",
        "status": {"inventory": {"entries": entries}},
    }

    assert inventory_refs(unit_resource) == refs


def test_a_missing_inventory_is_not_an_empty_one() -> None:
    assert inventory_refs({"kind": "Kustomization", "status": {}}) is None
    assert inventory_refs({"kind": "Application"}) is None
    assert inventory_refs({"kind": "Application", "status": {"resources": []}}) == []
