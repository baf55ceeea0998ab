"""A HelmRelease: its chart, its values, its policy, and the fields that are not supported."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.unit.dialect.flux_objects import (
    HELM,
    an_object,
    any_spec,
    field_of,
    results_by_name,
    the_unit,
)
from tidegate.dialect.declared import Declarations
from tidegate.dialect.flux.release import read_helm_release
from tidegate.documents import Document
from tidegate.model.k8s.objects import Propagation
from tidegate.model.times import MINUTE
from tidegate.model.units.chart_request import ChartRequest, InlineValues, ValuesFile
from tidegate.model.units.identity import ImpersonatedUser
from tidegate.model.units.policy import GateScope, Order, Tracking
from tidegate.model.units.rendering import (
    DataReference,
    FluxDetails,
    FluxOverrides,
    ImageOverride,
    KustomizePatch,
)
from tidegate.model.units.source import SourceObject
from tidegate.model.units.unit import Destination, UnitId

LEAST = """
interval: 10m
chart: {spec: {chart: web, version: ">=1", sourceRef: {kind: HelmRepository, name: shop}}}
"""
GIT = """
interval: 10m
chart:
  spec:
    chart: ./charts/web
    version: 9.9.9
    sourceRef: {kind: GitRepository, name: shop, namespace: trees}
    valuesFiles: [charts/web/values.yaml, ./prod.yaml]
    ignoreMissingValuesFiles: true
"""


def declared(spec: str, version: str = "v2", name: str = "apps") -> Declarations:
    document = an_object(f"{HELM}/{version}", "HelmRelease", spec, name=name)
    return read_helm_release(document, "default")


def request(result: Declarations) -> ChartRequest:
    (source,) = the_unit(result).sources
    assert isinstance(source.request, ChartRequest)
    return source.request


def details(result: Declarations) -> FluxDetails:
    (source,) = the_unit(result).sources
    assert isinstance(source.details, FluxDetails)
    return source.details


def test_a_chart_of_a_repository_has_a_name_and_a_version() -> None:
    result = declared(LEAST + "values: {replicas: 2}")
    (source,) = the_unit(result).sources

    assert the_unit(result).id == UnitId("HelmRelease", "", "flux-system", "apps")
    assert source.source == SourceObject("HelmRepository", "flux-system", "shop", "web", ">=1")
    assert source.request == ChartRequest(
        name="apps",
        namespace="flux-system",
        values={"replicas": 2},
        layers=(InlineValues(),),
        kube_version="",
        checks_lock=False,
    )
    assert result.findings == ()


def test_a_chart_in_a_tree_has_a_path_and_its_values_files_start_at_the_root() -> None:
    result = declared(GIT)
    (source,) = the_unit(result).sources

    assert source.source == SourceObject("GitRepository", "trees", "shop")
    assert request(result).chart == "charts/web"
    assert request(result).defaults == (
        ValuesFile("/charts/web/values.yaml", optional=True),
        ValuesFile("/prod.yaml", optional=True),
    )


def test_values_files_of_a_packed_chart_are_its_own() -> None:
    spec = (
        "interval: 1m\nchart: {spec: {chart: web, valuesFile: a.yaml, valuesFiles: [b.yaml],"
        " sourceRef: {kind: HelmRepository, name: shop}}}"
    )

    assert request(declared(spec, "v2beta1")).defaults == (
        ValuesFile("a.yaml"),
        ValuesFile("b.yaml"),
    )
    assert request(declared(spec)).defaults == (ValuesFile("b.yaml"),)
    assert results_by_name(declared(spec)) == {"spec.chart.spec.valuesFile": "flux.ignored"}


@pytest.mark.parametrize("kind", ["OCIRepository", "HelmChart", "ExternalArtifact"])
def test_a_chart_may_be_what_another_object_holds(kind: str) -> None:
    result = declared(f"interval: 1m\nchartRef: {{kind: {kind}, name: web, namespace: charts}}")
    (source,) = the_unit(result).sources

    assert source.source == SourceObject(kind, "charts", "web")
    assert request(result).chart == "."


@pytest.mark.parametrize(
    ("spec", "name", "helm"),
    [
        ("suspend: true", "web", "web"),
        ("releaseName: shop-web", "web", "shop-web"),
        ("targetNamespace: shop", "web", "shop-web"),
        (
            "targetNamespace: a-rather-long-namespace",
            "and-a-release-with-a-name-that-is-long-too",
            "a-rather-long-namespace-and-a-release-wi-deaac0f1cf6e",
        ),
    ],
)
def test_the_name_of_a_release_is_cut_as_flux_cuts_it(spec: str, name: str, helm: str) -> None:
    assert request(declared(LEAST + spec, name=name)).name == helm


def test_values_from_other_objects_are_references() -> None:
    spec = (
        "valuesFrom:\n"
        "- {kind: ConfigMap, name: a}\n"
        "- {kind: Secret, name: b, valuesKey: k, targetPath: x.y, optional: true, literal: true}"
    )

    assert details(declared(LEAST + spec)).value_references == (
        DataReference(kind="ConfigMap", name="a", key="values.yaml"),
        DataReference(
            kind="Secret", name="b", key="k", target_path="x.y", optional=True, literal=True
        ),
    )


def test_post_renderers_keep_their_order() -> None:
    spec = (
        "commonMetadata: {labels: {team: a}, annotations: {note: b}}\n"
        "postRenderers:\n"
        '- kustomize: {patches: [{patch: "x", target: {kind: Service}}]}\n'
        "- kustomize: {images: [{name: web, newTag: v2}]}"
    )
    result = details(declared(LEAST + spec))

    assert (result.labels, result.annotations) == ({"team": "a"}, {"note": "b"})
    assert result.post_renderers == (
        FluxOverrides(patches=(KustomizePatch(patch="x", target={"kind": "Service"}),)),
        FluxOverrides(images=(ImageOverride(name="web", new_tag="v2"),)),
    )


def test_a_policy_is_that_of_fluxs_controller() -> None:
    policy = the_unit(declared(LEAST)).policy

    assert (policy.semantics.name, policy.rules, policy.order) == ("flux", "kstatus", Order.HELM)
    assert (policy.tracking, policy.manager) == (Tracking.FLUX, "helm-controller")
    assert policy.gates is GateScope.ALL
    assert policy.prune
    assert not policy.self_heal
    assert policy.timeout == 5 * MINUTE
    assert policy.retry is not None
    assert policy.retry.limit == 0
    assert policy.object_options.propagation is Propagation.BACKGROUND


def test_options_of_helm_are_read_into_the_policy() -> None:
    spec = """
timeout: 10m
targetNamespace: shop
serviceAccountName: deployer
suspend: true
kubeConfig: {configMapRef: {name: prod}}
driftDetection: {mode: enabled}
dependsOn: [{name: db}]
install: &same
  disableWait: true
  timeout: 2m
  crds: Skip
  disableSchemaValidation: true
  createNamespace: true
  disableOpenAPIValidation: true
  disableTakeOwnership: true
  strategy: {name: RetryOnFailure, retryInterval: 1m}
upgrade:
  <<: *same
  force: true
"""
    result = declared(LEAST + spec)
    unit, policy = the_unit(result), the_unit(result).policy

    assert result.findings == ()
    assert (policy.gates, policy.timeout, policy.self_heal) == (GateScope.NONE, 2 * MINUTE, True)
    assert policy.create_namespace
    assert policy.fail_on_shared_resource
    assert (policy.object_options.replace, policy.object_options.validate) == (False, False)
    assert policy.release is not None
    assert policy.release.upgrade.replaces
    assert policy.retry is not None
    assert policy.retry.delay(9) == MINUTE
    assert policy.identity == ImpersonatedUser(user="system:serviceaccount:flux-system:deployer")
    assert not request(result).include_crds
    assert request(result).skip_schema
    assert unit.destination == Destination("prod", "shop")
    assert [dependency.unit for dependency in unit.dependencies] == [
        UnitId("HelmRelease", "", "flux-system", "db")
    ]
    assert unit.is_suspended


def test_post_renderers_may_spare_hooks() -> None:
    strategies = ("combined", "nohooks", "separate")
    matches = [
        details(declared(f"{LEAST}postRenderStrategy: {strategy}")) for strategy in strategies
    ]

    assert [item.skips_hooks for item in matches] == [False, True, False]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ("waitStrategy: {name: legacy}", "spec.waitStrategy.name"),
        ("install: {serverSideApply: false}", "spec.install.serverSideApply"),
        ("upgrade: {preserveValues: true}", "spec.upgrade.preserveValues"),
        ("upgrade: {serverSideApply: disabled}", "spec.upgrade.serverSideApply"),
        ("rollback: {serverSideApply: disabled}", "spec.rollback.serverSideApply"),
    ],
)
def test_unsupported_fields_are_reported(spec: str, field: str) -> None:
    assert results_by_name(declared(LEAST + spec))[field] == "flux.unsupported"


def test_fields_that_helm_removed_are_reported() -> None:
    result = results_by_name(declared(f"{LEAST}rollback: {{recreate: true}}"))

    assert result == {"spec.rollback.recreate": "flux.ignored"}


@pytest.mark.parametrize("way", ["auto", "enabled"])
def test_a_default_value_is_not_reported(way: str) -> None:
    spec = "waitStrategy: {name: poller}\npostRenderStrategy: combined\ntest: {enable: false}"
    applied = f"\nupgrade: {{serverSideApply: {way}}}\nrollback: {{recreate: false}}"

    assert results_by_name(declared(LEAST + spec + applied)) == {}


@pytest.mark.parametrize(
    ("spec", "field", "code"),
    [
        ("interval: 1m", "spec", "flux.exclusive"),
        (LEAST + "chartRef: {kind: HelmChart, name: x}", "spec", "flux.exclusive"),
        ("chart: {spec: {chart: x}}", "spec.chart.spec.sourceRef.kind", "flux.required"),
        ("chartRef: {kind: Bucket, name: x}", "spec.chartRef.kind", "flux.choice"),
        ("chartRef: {kind: HelmChart, name: x}", "spec.interval", "flux.required"),
        (LEAST + "timeout: 5", "spec.timeout", "flux.type"),
        (LEAST + "values: [a]", "spec.values", "flux.type"),
        (LEAST + f"releaseName: {'x' * 54}", "spec.releaseName", "flux.length"),
        (LEAST + "install: {crds: Maybe}", "spec.install.crds", "flux.choice"),
        (LEAST + "valuesFrom: [{kind: Pod, name: x}]", "spec.valuesFrom[0].kind", "flux.choice"),
        (LEAST + "driftDetection: {mode: on}", "spec.driftDetection.mode", "flux.type"),
    ],
)
def test_an_invalid_value_is_reported_with_its_field(spec: str, field: str, code: str) -> None:
    result = declared(spec)

    assert (field, code) in [(field_of(finding), finding.code) for finding in result.findings]
    assert the_unit(result).id.name == "apps"


NAMES = (
    *("interval", "chart", "chartRef", "spec", "sourceRef", "kind", "name", "version", "values"),
    *("valuesFrom", "valuesFiles", "install", "upgrade", "crds", "timeout", "remediation"),
    *("retries", "strategy", "postRenderers", "kustomize", "patches", "driftDetection", "test"),
)


@given(any_spec(*NAMES))
def test_random_fields_never_crash_the_reader(document: Document) -> None:
    for finding in read_helm_release(document, "default").findings:
        assert finding.code.startswith("flux.")
        assert finding.reason
