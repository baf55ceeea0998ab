"""Flux's order inside a unit."""

from __future__ import annotations

import pytest

from tests.support.builders import STAGED_POLICY
from tests.support.ordered_manifests import (
    CRD,
    a_thing,
    a_unit_of,
    links_of,
    plan_of,
    ref_of,
    results_by_name,
)
from tidegate.plan.build.stages import FIRST_KINDS, group_by_stage, object_rank

RBAC = "rbac.authorization.k8s.io/v1"
STORAGE = "storage.k8s.io/v1"
HOOKS = "admissionregistration.k8s.io/v1"


@pytest.mark.parametrize(
    ("kind", "stage"),
    [
        (CRD, "definitions"),
        ("apiextensions.k8s.io/v1beta1 CustomResourceDefinition", "definitions"),
        ("v1 Namespace", "definitions"),
        (f"{RBAC} ClusterRole", "definitions"),
        (f"{STORAGE} StorageClass", "classes"),
        ("shop.dev/v1 GadgetClass", "classes"),
        ("shop.dev/v1 Gadgetclass", "rest"),
        ("shop.dev/v1 Namespace", "rest"),
        (f"{RBAC} ClusterRoleBinding", "rest"),
        ("v1 ConfigMap", "rest"),
    ],
)
def test_each_kind_has_its_stage(kind: str, stage: str) -> None:
    (group,) = group_by_stage((a_thing(kind, "a"),))

    assert group.stage == stage


def test_stages_run_in_order_and_empty_ones_are_skipped() -> None:
    things = (a_thing("Pod", "pod"), a_thing("Namespace", "space"))

    plan = plan_of(a_unit_of(*things, policy=STAGED_POLICY))

    assert results_by_name(plan) == {"shop/definitions": [["space"]], "shop/rest": [["pod"]]}
    assert links_of(plan) == {("shop/definitions", "shop/rest", "stage")}


def test_waves_mean_nothing_in_stages() -> None:
    things = (a_thing("Pod", "a", wave=9), a_thing("Pod", "b", wave=-9))

    assert results_by_name(plan_of(a_unit_of(*things, policy=STAGED_POLICY))) == {
        "shop/rest": [["a", "b"]]
    }


def test_kinds_are_in_the_order_that_flux_gives_them() -> None:
    kinds = ["Widget", "PodDisruptionBudget", "CronJob", "Deployment", "LimitRange", "Service"]
    kinds += ["Secret", "ConfigMap", "RoleBinding", "Role", "ServiceAccount", "ResourceQuota"]
    webhooks = [
        f"{HOOKS} ValidatingWebhookConfiguration",
        f"{HOOKS} MutatingWebhookConfiguration",
    ]
    things = [a_thing(kind, "x") for kind in (*webhooks, *kinds)]

    (group,) = group_by_stage(tuple(things))

    assert [batch[0].ref.kind.name for batch in group.batches] == [
        *reversed(kinds),
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ]


def test_crds_precede_namespaces_and_namespaces_precede_roles() -> None:
    assert FIRST_KINDS[:3] == ["CustomResourceDefinition", "Namespace", "ClusterRole"]


def test_equal_ranks_are_ordered_by_group_kind_namespace_and_name() -> None:
    refs = [
        ref_of("a.dev/v1 Beta", "x", "n1"),
        ref_of("b.dev/v1 Alpha", "a", "n2"),
        ref_of("b.dev/v1 Alpha", "b", "n1"),
        ref_of("a.dev/v1 Beta", "a", "n2"),
        ref_of("a.dev/v1 Alpha", "z", "n9"),
    ]

    reported_in_order = [
        (ref.kind.group, ref.kind.name, ref.name) for ref in sorted(refs, key=object_rank)
    ]

    assert reported_in_order == [
        ("a.dev", "Alpha", "z"),
        ("a.dev", "Beta", "x"),
        ("a.dev", "Beta", "a"),
        ("b.dev", "Alpha", "b"),
        ("b.dev", "Alpha", "a"),
    ]
