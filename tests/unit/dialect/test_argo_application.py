"""Applications as units: who they are, where they go, what counts of them, what is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.dialect.applications import CHARTS, GIT, WEB, an_application, codes, declared, unit
from tidegate.dialect.argo.application import read_application
from tidegate.documents import Document
from tidegate.errors import Location
from tidegate.model.finding import Severity
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.units.policy import Tracking
from tidegate.model.units.source import ChartSource, GitSource
from tidegate.model.units.unit import Destination, UnitId

CHART: JsonObject = {"repoURL": CHARTS, "chart": "redis", "targetRevision": "1.2.3"}
SERVER = "https://kubernetes.default.svc"
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=12,
)


def test_an_application_is_a_unit_by_its_namespace_and_name() -> None:
    result = unit()

    assert result.id == UnitId("Application", "", "argocd", "web")
    assert result.location == Location("apps.yaml", 7)
    assert result.policy.semantics.name == "argocd"
    assert result.policy.manager == "argocd-controller"
    assert result.policy.tracking is Tracking.ARGO


def test_an_application_that_names_no_namespace_is_in_the_given_one() -> None:
    document = an_application({"namespace": None})

    assert read_application(document, "gitops").units[0].id.namespace == "gitops"


def test_an_application_without_a_name_is_no_unit() -> None:
    application = read_application(an_application({"name": ""}), "argocd")

    assert application.units == ()
    assert codes(application.findings) == ["error argo.name at metadata"]


@pytest.mark.parametrize(
    ("destination", "cluster"),
    [
        ({"server": SERVER}, ""),
        ({"server": f"{SERVER}/"}, ""),
        ({"name": "in-cluster"}, ""),
        ({"name": "prod"}, "prod"),
        ({"server": "https://10.0.0.1:6443"}, "https://10.0.0.1:6443"),
    ],
)
def test_the_own_cluster_has_no_name(destination: JsonObject, cluster: str) -> None:
    result = unit(destination={**destination, "namespace": "shop"})

    assert result.destination == Destination(cluster, "shop")


@pytest.mark.parametrize(
    "destination", [{}, {"namespace": "shop"}, {"server": SERVER, "name": "in-cluster"}]
)
def test_a_destination_must_set_exactly_one_of_server_and_name(destination: JsonObject) -> None:
    result = declared(destination=destination)

    assert codes(result.findings) == ["error argo.destination at spec.destination"]
    assert len(result.units) == 1


@pytest.mark.parametrize(
    ("word", "suspended"),
    [("true", True), ("1", True), ("T", True), ("yes", False), ("false", False), (True, False)],
)
def test_an_application_that_is_not_reconciled_is_suspended(word: Json, suspended: bool) -> None:  # noqa: FBT001
    document = an_application({"annotations": {"argocd.argoproj.io/skip-reconcile": word}})

    assert read_application(document, "argocd").units[0].is_suspended is suspended


def test_many_sources_win_over_one_with_a_warning() -> None:
    result = declared(sources=[CHART, {"repoURL": GIT, "ref": "values"}])

    assert codes(result.findings) == ["warning argo.sources at spec.source"]
    chart, values = result.units[0].sources
    assert isinstance(chart.source, ChartSource)
    assert isinstance(values.source, GitSource)
    assert values.request is None


def test_an_empty_list_of_sources_does_not_count() -> None:
    assert [source.path for source in unit(sources=[]).sources] == ["web"]


@pytest.mark.parametrize("spec", [{"source": None}, {"source": None, "sources": []}])
def test_an_application_without_sources_is_reported_and_still_a_unit(spec: JsonObject) -> None:
    result = declared(**spec)

    assert codes(result.findings) == ["error argo.source at spec"]
    assert [unit.sources for unit in result.units] == [()]


def test_an_invalid_source_does_not_affect_the_others() -> None:
    result = declared(source=None, sources=[WEB, {"path": "other"}])

    assert codes(result.findings) == ["error argo.source at spec.sources[1].repoURL"]
    assert [source.path for source in result.units[0].sources] == ["web"]


def test_the_dry_source_of_a_hydrator_is_rendered_with_a_warning() -> None:
    hydrator: JsonObject = {
        "drySource": {"repoURL": GIT, "path": "dry", "targetRevision": "main"},
        "syncSource": {"targetBranch": "prod", "path": "web"},
    }

    result = declared(sourceHydrator=hydrator)

    assert [source.path for source in result.units[0].sources] == ["dry"]
    assert codes(result.findings) == [
        "warning argo.sources at spec.source",
        "warning argo.hydrator at spec.sourceHydrator",
    ]


@pytest.mark.parametrize(
    ("refs", "expected"),
    [
        (["a", "b"], []),
        (["a", "a"], ["error argo.ref at spec.sources[2].ref"]),
        (["a/b", "ä"], ["error argo.ref at spec.sources[1].ref"] * 2),
    ],
)
def test_refs_are_valid_names_and_unique(refs: list[str], expected: list[str]) -> None:
    named: list[Json] = [{"repoURL": GIT, "ref": ref} for ref in refs]

    result = codes(declared(source=None, sources=[WEB, *named]).findings)

    assert result == [item.replace("[1]", f"[{place + 1}]") for place, item in enumerate(expected)]


@pytest.mark.parametrize(
    ("helm", "expected"),
    [
        ({"valueFiles": ["values.yaml", "$values/web.yaml"]}, []),
        ({"fileParameters": [{"name": "a", "path": "$values/a"}]}, []),
        ({"valueFiles": ["$other/a"]}, ["error argo.ref at spec.sources[0].helm.valueFiles[0]"]),
        (
            {"fileParameters": [{"name": "a", "path": "$other/a"}]},
            ["error argo.ref at spec.sources[0].helm.fileParameters[0].path"],
        ),
    ],
)
def test_values_files_start_with_an_existing_ref(helm: JsonObject, expected: list[str]) -> None:
    sources: list[Json] = [{**CHART, "helm": helm}, {"repoURL": GIT, "ref": "values"}]

    assert codes(declared(source=None, sources=sources).findings) == expected


def test_a_single_source_has_no_refs() -> None:
    sources: list[Json] = [{**CHART, "ref": "values", "helm": {"valueFiles": ["$values/a"]}}]

    result = declared(source=None, sources=sources)

    assert codes(result.findings) == ["error argo.ref at spec.sources[0].helm.valueFiles[0]"]


def test_in_a_single_source_a_dollar_is_a_variable() -> None:
    unit(source={**CHART, "helm": {"valueFiles": ["$ARGOCD_APP_NAME/a.yaml"]}})


@pytest.mark.parametrize(
    ("files", "severity"), [([], Severity.WARNING), (["$it/a"], Severity.ERROR)]
)
def test_a_chart_source_cannot_provide_values_files(files: list[Json], severity: Severity) -> None:
    sources: list[Json] = [{**CHART, "ref": "it"}, {**WEB, "helm": {"valueFiles": files}}]

    (finding,) = declared(source=None, sources=sources).findings

    assert (finding.code, finding.severity) == ("argo.ref", severity)


def test_an_operation_is_reported() -> None:
    document = an_application()
    body: JsonObject = {**document.body, "operation": {"sync": {}}}

    application = read_application(Document(body, document.location), "argocd")

    assert codes(application.findings) == ["note argo.operation at operation"]


KEYS = st.sampled_from(
    ["destination", "ignoreDifferences", "info", "project", "revisionHistoryLimit", "syncPolicy"]
)
SOURCES = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("repoURL", "path", "chart", "ref", "targetRevision"), st.text() | JSON),
        **dict.fromkeys(("helm", "kustomize", "directory", "plugin"), JSON),
    },
)


@given(st.dictionaries(KEYS, JSON), SOURCES, st.lists(SOURCES | JSON, max_size=3), JSON)
def test_random_fields_never_crash_the_reader(
    spec: JsonObject, source: JsonObject, sources: list[Json], hydrator: Json
) -> None:
    for body in (
        spec,
        {**spec, "source": source},
        {**spec, "sources": sources},
        {**spec, "sourceHydrator": {"drySource": hydrator}},
    ):
        application = read_application(_with(body), "a")

        assert [unit.id.tracking_id for unit in application.units] == ["Application/argocd/web"]


@given(JSON)
def test_any_spec_is_read(spec: Json) -> None:
    application = read_application(_with(spec), "a")

    assert [unit.id.tracking_id for unit in application.units] == ["Application/argocd/web"]


def _with(spec: Json) -> Document:
    document = an_application()
    return Document({**document.body, "spec": spec}, document.location)
