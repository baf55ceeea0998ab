"""A Kustomization of Flux's: its tree, its overlay, its policy, and what is wrong with it."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.unit.dialect.flux_objects import (
    KUSTOMIZE,
    an_object,
    any_spec,
    field_of,
    results_by_name,
    the_unit,
)
from tidegate.dialect.declared import Declarations
from tidegate.dialect.flux.kustomization import read_kustomization
from tidegate.documents import Document
from tidegate.model.finding import Severity
from tidegate.model.k8s.objects import Kind, Propagation, Ref
from tidegate.model.times import MINUTE, SECOND
from tidegate.model.units.identity import ImpersonatedUser
from tidegate.model.units.ignore_differences import IgnoreDifference
from tidegate.model.units.policy import GateScope, Order, Permission, Tracking
from tidegate.model.units.rendering import (
    DataReference,
    FluxDetails,
    FluxOverrides,
    ImageOverride,
    KustomizePatch,
    LoadRestriction,
    Overlay,
    Substitution,
)
from tidegate.model.units.source import SourceObject
from tidegate.model.units.unit import Destination, UnitId

LEAST = """
interval: 10m
prune: true
sourceRef: {kind: GitRepository, name: shop}
"""
FULL = """
interval: 10m
retryInterval: 1m
timeout: 3m
prune: true
force: true
suspend: true
path: ./apps/x/
serviceAccountName: deployer
targetNamespace: shop
namePrefix: a-
nameSuffix: -z
sourceRef: {kind: OCIRepository, name: shop, namespace: trees}
kubeConfig: {secretRef: {name: prod, key: value}}
commonMetadata: {labels: {team: a}, annotations: {note: b}}
components: [../part]
ignoreMissingComponents: true
buildMetadata: [originAnnotations]
images: [{name: web, newName: w, newTag: v2, digest: sha256:0}]
patches:
- {patch: "- op: remove", target: {kind: Deployment, labelSelector: app=web}}
postBuild:
  substitute: {region: eu}
  substituteFrom: [{kind: Secret, name: settings, optional: true}]
  substituteStrategy: Always
decryption: {provider: sops, secretRef: {name: keys}}
dependsOn:
- {name: infra, readyExpr: "dep.status.ready == true"}
- {name: other, namespace: elsewhere}
"""


def declared(spec: str, version: str = "v1") -> Declarations:
    return read_kustomization(an_object(f"{KUSTOMIZE}/{version}", "Kustomization", spec), "default")


def test_a_unit_knows_its_tree_and_the_overlay_in_it() -> None:
    unit = the_unit(declared(FULL))
    (source,) = unit.sources

    assert unit.id == UnitId("Kustomization", "", "flux-system", "apps")
    assert source.source == SourceObject("OCIRepository", "trees", "shop")
    assert source.request == Overlay(
        path="apps/x",
        restriction=LoadRestriction.NONE,
        overrides=FluxOverrides(
            target_namespace="shop",
            name_prefix="a-",
            name_suffix="-z",
            images=(ImageOverride(name="web", new_name="w", new_tag="v2", digest="sha256:0"),),
            patches=(
                KustomizePatch(
                    patch="- op: remove",
                    target={"kind": "Deployment", "labelSelector": "app=web"},
                ),
            ),
            components=("../part",),
            ignore_missing_components=True,
            build_metadata=("originAnnotations",),
        ),
    )


def test_steps_around_the_build_are_separate_from_it() -> None:
    (source,) = the_unit(declared(FULL)).sources

    assert source.details == FluxDetails(
        substitution=Substitution(
            inline={"region": "eu"},
            references=(DataReference(kind="Secret", name="settings", optional=True),),
            always=True,
        ),
        decrypts=True,
        key_secret="keys",
        labels={"team": "a"},
        annotations={"note": "b"},
    )


def test_missing_fields_have_the_defaults_of_flux() -> None:
    unit = the_unit(declared(LEAST))
    (source,) = unit.sources

    assert source.source == SourceObject("GitRepository", "flux-system", "shop")
    assert source.request == Overlay(overrides=FluxOverrides(), restriction=LoadRestriction.NONE)
    assert source.details == FluxDetails()
    assert unit.destination == Destination()
    assert not unit.is_suspended
    assert declared(LEAST).findings == ()


def test_a_policy_is_that_of_fluxs_controller() -> None:
    policy = the_unit(declared(FULL)).policy

    assert (policy.semantics.name, policy.rules) == ("flux", "kstatus")
    assert (policy.order, policy.tracking) == (Order.STAGES, Tracking.FLUX)
    assert policy.manager == "kustomize-controller"
    assert policy.prune
    assert policy.self_heal
    assert policy.auto_sync
    assert policy.object_options.force
    assert policy.object_options.propagation is Propagation.BACKGROUND
    assert policy.identity == ImpersonatedUser(user="system:serviceaccount:flux-system:deployer")


def test_a_kustomization_has_a_destination_and_dependencies() -> None:
    unit = the_unit(declared(FULL))

    assert unit.destination == Destination("prod", "shop")
    assert unit.is_suspended
    assert [
        (dependency.unit, dependency.ready_when, str(dependency.location))
        for dependency in unit.dependencies
    ] == [
        (
            UnitId("Kustomization", "", "flux-system", "infra"),
            "dep.status.ready == true",
            "apps.yaml:1:1 (spec.dependsOn[0])",
        ),
        (
            UnitId("Kustomization", "", "elsewhere", "other"),
            "",
            "apps.yaml:1:1 (spec.dependsOn[1])",
        ),
    ]


@pytest.mark.parametrize(
    ("spec", "timeout", "pause"),
    [
        ("interval: 10m\ntimeout: 3m\nretryInterval: 1m", 3 * MINUTE, MINUTE),
        ("interval: 10m", 570 * SECOND, 10 * MINUTE),
        ("interval: 20s", 30 * SECOND, 20 * SECOND),
        ("interval: 1h\ntimeout: 1s", 30 * SECOND, 60 * MINUTE),
    ],
)
def test_time_is_never_shorter_than_half_a_minute(spec: str, timeout: int, pause: int) -> None:
    policy = the_unit(declared(spec)).policy

    assert policy.timeout == timeout
    assert policy.retry is not None
    assert [policy.retry.delay(attempt) for attempt in (1, 1000)] == [pause, pause]


@pytest.mark.parametrize(
    ("spec", "consent"),
    [
        ("prune: true", Permission.YES),
        ("prune: false", Permission.NO),
        ("prune: true\ndeletionPolicy: Orphan", Permission.NO),
        ("prune: false\ndeletionPolicy: Delete", Permission.YES),
        ("prune: false\ndeletionPolicy: WaitForTermination", Permission.YES),
    ],
)
def test_the_deletion_policy_is_read(spec: str, consent: Permission) -> None:
    assert the_unit(declared(spec)).policy.object_options.delete is consent


def test_health_is_checked_for_all_or_the_listed_or_no_objects() -> None:
    checks = (
        "healthChecks:\n"
        "- {kind: Deployment, name: web, namespace: shop}\n"
        "- {apiVersion: v1, kind: Namespace, name: shop}\n"
        "- {apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, name: apps,"
        " namespace: flux-system}"
    )
    listed, both = declared(LEAST + checks), declared(f"{LEAST}{checks}\nwait: true")

    assert the_unit(declared(LEAST)).policy.gates is GateScope.NONE
    assert the_unit(listed).policy.gates is GateScope.LISTED
    assert the_unit(listed).policy.gating_refs == (
        Ref(Kind("apps", "v1", "Deployment"), "shop", "web"),
        Ref(Kind("", "v1", "Namespace"), "", "shop"),
    )
    assert the_unit(both).policy.gates is GateScope.ALL
    assert the_unit(both).policy.gating_refs == ()
    assert results_by_name(both) == {"spec.healthChecks": "flux.ignored"}


def test_ignore_rules_match_objects_by_literal_names() -> None:
    spec = (
        "ignore:\n"
        "- {paths: [/spec/replicas], target: {kind: Deployment, group: apps}}\n"
        "- {paths: [/data]}\n"
        "- {paths: [/x], target: {name: web-.*}}\n"
        "- {paths: [/x], target: {labelSelector: a=b}}"
    )
    result = declared(LEAST + spec)

    assert the_unit(result).policy.respect_ignore_differences
    assert the_unit(result).policy.ignore_differences == (
        IgnoreDifference(kind="Deployment", group="apps", pointers=("/spec/replicas",)),
        IgnoreDifference(kind="*", group="*", pointers=("/data",)),
    )
    assert results_by_name(result) == {
        "spec.ignore[2].target": "flux.unsupported",
        "spec.ignore[3].target": "flux.unsupported",
    }


def test_old_versions_have_old_patches_and_are_reported() -> None:
    spec = (
        "validation: client\n"
        "patchesStrategicMerge: [{kind: Deployment}]\n"
        "patchesJson6902: [{patch: [{op: remove, path: /a}], target: {kind: Service}}]"
    )
    old, new = declared(LEAST + spec, "v1beta1"), declared(LEAST + spec)
    (source,) = the_unit(old).sources

    assert isinstance(source.request, Overlay)
    assert isinstance(source.request.overrides, FluxOverrides)
    assert source.request.overrides.patches == (
        KustomizePatch(patch='{"kind": "Deployment"}'),
        KustomizePatch(patch='[{"op": "remove", "path": "/a"}]', target={"kind": "Service"}),
    )
    assert results_by_name(old) == {"apiVersion": "flux.version", "spec.validation": "flux.ignored"}
    assert "2.7" in old.findings[0].message
    assert results_by_name(new) == {
        "spec.patchesStrategicMerge": "flux.ignored",
        "spec.patchesJson6902": "flux.ignored",
        "spec.validation": "flux.ignored",
    }


@pytest.mark.parametrize(
    ("spec", "field", "code"),
    [
        ("interval: soon", "spec.interval", "flux.duration"),
        ("interval: -5m", "spec.interval", "flux.duration"),
        ("interval: 5", "spec.interval", "flux.type"),
        ("interval: 1m", "spec.sourceRef", "flux.required"),
        ("prune: yes please", "spec.prune", "flux.type"),
        ("path: x", "spec.prune", "flux.required"),
        ("sourceRef: {kind: GitRepository}", "spec.sourceRef.name", "flux.required"),
        ("sourceRef: {kind: HelmRepository, name: x}", "spec.sourceRef.kind", "flux.choice"),
        ("decryption: {provider: vault}", "spec.decryption.provider", "flux.choice"),
        ("dependsOn: [{name: apps}]", "spec.dependsOn[0]", "flux.itself"),
        ("dependsOn: [apps]", "spec.dependsOn[0]", "flux.type"),
        ("kubeConfig: {}", "spec.kubeConfig", "flux.exclusive"),
        (
            "kubeConfig: {secretRef: {name: a}, configMapRef: {name: b}}",
            "spec.kubeConfig",
            "flux.exclusive",
        ),
        ("deletionPolicy: Keep", "spec.deletionPolicy", "flux.choice"),
        ("postBuild: {substitute: {count: 3}}", "spec.postBuild.substitute.count", "flux.type"),
        ("components: [1]", "spec.components[0]", "flux.type"),
        ("healthCheckExprs: [{kind: X}]", "spec.healthCheckExprs[0].current", "flux.required"),
    ],
)
def test_an_invalid_value_is_reported_with_its_field(spec: str, field: str, code: str) -> None:
    result = declared(spec)

    assert (field, code) in [(field_of(finding), finding.code) for finding in result.findings]
    assert the_unit(result).id.name == "apps"


def test_a_unit_that_depends_on_itself_does_not_wait_for_itself() -> None:
    assert the_unit(declared("dependsOn: [{name: apps}]")).dependencies == ()


@pytest.mark.parametrize(
    ("path", "walked"), [("../../x", "x"), ("a/../..", "."), ("/x//y/", "x/y")]
)
def test_a_path_stops_at_the_root_of_its_tree(path: str, walked: str) -> None:
    result = declared(f"{LEAST}path: {path}")
    (source,) = the_unit(result).sources

    assert source.path == walked
    leaves = path != "/x//y/"
    assert [finding.severity for finding in result.findings] == [Severity.WARNING] * leaves
    assert set(results_by_name(result).values()) == ({"flux.path"} if leaves else set())


def test_no_value_of_a_variable_is_shown() -> None:
    result = declared(LEAST + "postBuild: {substitute: {password: [hunter2]}}")

    assert "hunter2" not in repr(result.findings)


def test_an_object_without_a_name_is_no_unit() -> None:
    document = Document({"apiVersion": f"{KUSTOMIZE}/v1"}, an_object("v1", "X", "a: 1").location)
    kustomization = read_kustomization(document, "default")

    assert kustomization.units == ()
    assert results_by_name(kustomization)["metadata.name"] == "flux.required"


NAMES = (
    *("interval", "timeout", "sourceRef", "kind", "name", "namespace", "path", "patches", "target"),
    *("patchesJson6902", "patchesStrategicMerge", "images", "dependsOn", "healthChecks", "ignore"),
    *("postBuild", "substitute", "substituteFrom", "decryption", "kubeConfig", "secretRef", "wait"),
)


@given(any_spec(*NAMES))
def test_random_fields_never_crash_the_reader(document: Document) -> None:
    for finding in read_kustomization(document, "default").findings:
        assert finding.code.startswith("flux.")
        assert finding.reason
