"""Documents become a unit: order, hooks, marks, and what is refused."""

from __future__ import annotations

import msgspec
import pytest

from tests.unit.dialect.documents import (
    HELM_HOOK,
    HOOK,
    OPTIONS,
    POLICY,
    WAVE,
    WEIGHT,
    a_document,
    read,
)
from tidegate.documents import Document
from tidegate.errors import DialectError, Location
from tidegate.model.k8s.json_fields import get_mapping, get_value
from tidegate.model.k8s.objects import Json, Kind, Ref
from tidegate.model.plans.manifest import Manifest, Phase
from tidegate.model.plans.plan import HookPolicy
from tidegate.model.units.policy import Order, Permission

KEEP = "helm.sh/resource-policy"
UNIT = "tidegate.dev/unit"
CRD = "apiextensions.k8s.io/v1 CustomResourceDefinition"


def body_of(manifest: Manifest) -> dict[str, Json]:
    body: dict[str, Json] = msgspec.json.decode(manifest.body)
    return body


def owner_of(manifest: Manifest) -> Json:
    return get_mapping(body_of(manifest), "metadata", "annotations").get(UNIT)


def refused(*documents: Document) -> DialectError:
    with pytest.raises(DialectError) as raised:
        read(*documents)
    return raised.value


def test_an_object_is_marked_as_the_units_own_and_put_into_its_namespace() -> None:
    (manifest,) = read(a_document(notes={"mine": "1"})).manifests

    metadata = get_mapping(body_of(manifest), "metadata")
    assert manifest.ref == Ref(Kind("", "v1", "ConfigMap"), "shop", "settings")
    assert metadata["namespace"] == "shop"
    assert metadata["annotations"] == {"mine": "1", UNIT: "shop/web"}


def test_an_object_that_names_a_namespace_stays_in_it() -> None:
    (manifest,) = read(a_document(namespace="other")).manifests

    assert (
        manifest.ref.namespace == get_value(body_of(manifest), "metadata", "namespace") == "other"
    )


def test_a_cluster_scoped_object_has_no_namespace() -> None:
    (manifest,) = read(a_document("v1 Namespace", "blue", namespace="other")).manifests

    assert manifest.ref.namespace == ""
    assert "namespace" not in get_mapping(body_of(manifest), "metadata")


def test_manifests_have_their_unit_and_destination() -> None:
    unit = read(a_document()).unit

    assert (str(unit.id), unit.destination.namespace) == ("shop/web", "shop")


def test_a_definition_has_a_defined_kind_and_no_owner() -> None:
    document = a_document(CRD, "gadgets.shop.dev")
    spec: Json = {"group": "shop.dev", "names": {"kind": "Gadget"}}
    given = Document({**document.body, "spec": spec}, document.location)

    (manifest,) = read(given).manifests

    assert manifest.defined_kind == ("shop.dev", "Gadget")
    assert owner_of(manifest) is None


def test_a_kind_of_the_same_name_in_another_group_defines_nothing() -> None:
    document = a_document("shop.dev/v1 CustomResourceDefinition", "odd")
    spec: Json = {"group": "shop.dev", "names": {"kind": "Gadget"}}

    (manifest,) = read(Document({**document.body, "spec": spec}, document.location)).manifests

    assert manifest.defined_kind == ("", "")


def test_waves_and_options_are_read_from_annotations() -> None:
    (manifest,) = read(a_document(notes={WAVE: "2", OPTIONS: "Replace=true"})).manifests

    assert (manifest.wave, manifest.options.replace) == (2, True)


def test_waves_can_be_ignored_even_wrong_ones() -> None:
    first, second = a_document(notes={WAVE: "2"}), a_document(name="b", notes={WAVE: "late"})

    manifests = read(first, second, order=Order.NONE).manifests

    assert [manifest.wave for manifest in manifests] == [0, 0]


def test_a_hook_is_in_each_of_its_phases() -> None:
    notes: dict[str, Json] = {HOOK: "PreSync,PostSync", POLICY: "HookSucceeded"}

    manifests = read(a_document("batch/v1 Job", "migrate", notes=notes)).manifests

    assert [manifest.phase for manifest in manifests] == [Phase.PRE_SYNC, Phase.POST_SYNC]
    assert {manifest.hook_policies for manifest in manifests} == {(HookPolicy.SUCCEEDED,)}


def test_a_sync_hook_is_not_also_an_object() -> None:
    (manifest,) = read(a_document("v1 Pod", "seed", notes={HOOK: "Sync"})).manifests

    assert (manifest.phase, manifest.hook_policies) == (Phase.SYNC, (HookPolicy.BEFORE_CREATION,))


@pytest.mark.parametrize("notes", [{HOOK: "Skip"}, {HOOK: "Whenever"}, {HELM_HOOK: "test"}])
def test_skipped_and_unsupported_hooks_are_not_in_the_unit(notes: dict[str, Json]) -> None:
    unit = read(a_document(notes=notes))

    assert (unit.manifests, unit.before_deletion, unit.after_deletion) == ((), (), ())


def test_a_skipped_object_is_not_validated() -> None:
    unit = read(a_document("v1 ConfigMap", "", notes={HOOK: "Skip", WAVE: "late"}))

    assert unit.manifests == ()


def test_hooks_of_the_end_are_kept_apart() -> None:
    unit = read(
        a_document("batch/v1 Job", "save", notes={HOOK: "PreDelete"}),
        a_document("batch/v1 Job", "tell", notes={HELM_HOOK: "post-delete"}),
        a_document("batch/v1 Job", "both", notes={HOOK: "PreSync,PreDelete"}),
    )

    assert [manifest.ref.name for manifest in unit.manifests] == ["both"]
    assert [item.ref.name for item in unit.before_deletion] == ["save", "both"]
    assert [item.ref.name for item in unit.after_deletion] == ["tell"]


def test_a_hook_may_have_the_beginning_of_a_name_alone() -> None:
    job = a_document("batch/v1 Job", "", notes={HOOK: "PreSync"}, generateName="migrate-")

    (manifest,) = read(job).manifests

    assert manifest.ref.name == "migrate-"


def test_an_ordinary_object_may_not_have_the_beginning_of_a_name_alone() -> None:
    error = refused(a_document("v1 Pod", "", generateName="seed-", line=4))

    assert (error.code, error.location) == ("dialect.nameless", Location("shop.yaml", 4))


@pytest.mark.parametrize("kind", [" ConfigMap", "v1 ", "apps/ Deployment"])
def test_a_document_without_a_kind_is_rejected(kind: str) -> None:
    assert refused(a_document(kind)).code == "dialect.incomplete"


def test_a_document_without_a_name_is_rejected() -> None:
    assert refused(a_document(name="")).code == "dialect.incomplete"


def test_two_objects_with_one_name_are_refused_with_both_places() -> None:
    error = refused(a_document(line=3), a_document(namespace="shop", line=9))

    assert error.code == "dialect.duplicate"
    assert "ConfigMap shop/settings" in error.problem
    assert error.location == Location("shop.yaml", 9)
    assert "shop.yaml:3" in error.hint


def test_two_versions_of_one_object_are_refused() -> None:
    old, new = "policy/v1beta1 PodDisruptionBudget", "policy/v1 PodDisruptionBudget"

    assert refused(a_document(old), a_document(new)).code == "dialect.duplicate"


def test_objects_that_differ_in_kind_or_namespace_are_not_the_same() -> None:
    unit = read(a_document(), a_document("v1 Secret"), a_document(namespace="other"))

    assert len(unit.manifests) == 3


def test_hooks_with_the_same_beginning_of_a_name_are_not_the_same() -> None:
    document = a_document("v1 Pod", "", notes={HOOK: "PreSync"}, generateName="seed-")

    assert len(read(document, document).manifests) == 2


def test_everything_that_is_wrong_is_reported_at_once() -> None:
    with pytest.raises(ExceptionGroup) as raised:
        read(a_document(notes={WAVE: "late"}), a_document(name=""), a_document(name="fine"))

    codes = [error.code for error in raised.value.exceptions if isinstance(error, DialectError)]
    assert codes == ["dialect.wave", "dialect.incomplete"]


def test_a_missing_namespace_is_added_to_a_unit() -> None:
    created, other = read(a_document(), options=("CreateNamespace=true",)).manifests

    assert created.ref == Ref(Kind("", "v1", "Namespace"), "", "shop")
    assert (created.phase, created.wave, created.hook_policies) == (Phase.PRE_SYNC, 0, None)
    assert (owner_of(created), owner_of(other)) == (None, "shop/web")


def test_no_namespace_is_added_if_the_unit_contains_it() -> None:
    unit = read(a_document("v1 Namespace", "shop"), a_document(), options=("CreateNamespace=true",))

    assert [manifest.phase for manifest in unit.manifests] == [Phase.SYNC, Phase.SYNC]


def test_no_namespace_is_added_without_create_namespace() -> None:
    assert [manifest.ref.kind.name for manifest in read(a_document()).manifests] == ["ConfigMap"]


def test_in_a_helm_release_only_helm_annotations_are_used() -> None:
    hooked = a_document(name="hooked", notes={HELM_HOOK: "pre-install", WEIGHT: "5", WAVE: "7"})
    waved = a_document(name="waved", notes={WAVE: "3", HOOK: "PreSync", OPTIONS: "Prune=false"})
    weighed = a_document(name="weighed", notes={WEIGHT: "4", KEEP: "keep"})

    by_name = {
        manifest.ref.name: manifest
        for manifest in read(hooked, waved, weighed, order=Order.HELM).manifests
    }

    assert {name: (item.phase, item.wave) for name, item in by_name.items()} == {
        "hooked": (Phase.PRE_SYNC, 5),
        "waved": (Phase.SYNC, 0),
        "weighed": (Phase.SYNC, 0),
    }
    assert by_name["waved"].hook_policies is None
    assert by_name["waved"].options.prune is Permission.YES
    assert by_name["weighed"].options.delete is Permission.NO
