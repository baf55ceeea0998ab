"""Sources of Flux's: where trees come from, and what a unit's source is in the end."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.unit.dialect.flux_objects import SOURCE, an_object, any_spec, field_of, results_by_name
from tidegate.dialect.declared import Declarations
from tidegate.dialect.flux.sources import read_flux_source, resolve_source
from tidegate.documents import Document
from tidegate.model.units.source import (
    ChartSource,
    DeclaredSource,
    GitRef,
    GitRefKind,
    GitSource,
    OciSource,
    SourceObject,
    SourceRef,
)

URL = "https://git.example/shop"
GIT = f"interval: 1m\nurl: {URL}\n"


def declared(kind: str, spec: str, version: str = "v1") -> Declarations:
    return read_flux_source(an_object(f"{SOURCE}/{version}", kind, spec), "default")


def the_source(result: Declarations) -> DeclaredSource:
    (source,) = result.sources
    return source


@pytest.mark.parametrize(
    ("ref", "at"),
    [
        ("", GitRef(GitRefKind.BRANCH, "master")),
        ("ref: {branch: main}", GitRef(GitRefKind.BRANCH, "main")),
        ("ref: {branch: main, tag: v1}", GitRef(GitRefKind.TAG, "v1")),
        ("ref: {tag: v1, semver: '>=1'}", GitRef(GitRefKind.RANGE, ">=1")),
        (
            "ref: {semver: '>=1', name: refs/pull/1/head}",
            GitRef(GitRefKind.NAME, "refs/pull/1/head"),
        ),
        ("ref: {name: refs/x, commit: 0a1b}", GitRef(GitRefKind.COMMIT, "0a1b")),
    ],
)
def test_the_ref_of_a_git_repository_follows_the_precedence_of_flux(ref: str, at: GitRef) -> None:
    assert the_source(declared("GitRepository", GIT + ref)).source == GitSource(URL, at)


def test_a_commit_can_have_a_branch_and_other_combinations_are_reported() -> None:
    assert (
        results_by_name(declared("GitRepository", f"{GIT}ref: {{commit: 0a, branch: main}}")) == {}
    )
    assert results_by_name(declared("GitRepository", f"{GIT}ref: {{tag: v1, branch: main}}")) == {
        "spec.ref.branch": "flux.ignored"
    }


def test_a_git_repository_has_ignore_rules_and_credentials() -> None:
    spec = GIT + (
        "recurseSubmodules: true\nignore: '*.md'\nsuspend: true\nsecretRef: {name: key}\n"
        "sparseCheckout: [./deploy, lib]\n"
        "include: [{repository: {name: lib}}, {repository: {name: x}, fromPath: /a, toPath: b}]"
    )
    result = the_source(declared("GitRepository", spec))

    assert result.id == SourceObject("GitRepository", "flux-system", "apps")
    assert result.source == GitSource(URL, GitRef(GitRefKind.BRANCH, "master"), submodules=True)
    assert (result.ignore, result.secret_name, result.is_suspended) == ("*.md", "key", True)
    assert result.sparse_directories == ("deploy", "lib")
    assert [(copy_.source.name, copy_.pattern, copy_.destination) for copy_ in result.copies] == [
        ("lib", ".", "lib"),
        ("x", "a", "b"),
    ]
    assert results_by_name(declared("GitRepository", spec)) == {}


def test_an_artifact_is_chosen_by_its_ref_and_its_layer() -> None:
    spec = (
        "interval: 1m\nurl: oci://r.example/shop\ninsecure: true\n"
        "ref: {tag: v1, semver: '>=1', semverFilter: '.*-rc', digest: 'sha256:0'}\n"
        "layerSelector: {mediaType: application/x, operation: copy}"
    )

    assert the_source(declared("OCIRepository", spec)).source == OciSource(
        "oci://r.example/shop",
        tag="v1",
        range=">=1",
        filter=".*-rc",
        digest="sha256:0",
        media_type="application/x",
        copies_layer=True,
        plain_http=True,
    )


@pytest.mark.parametrize(
    ("spec", "source"),
    [
        (
            "url: https://charts.example\npassCredentials: true",
            ChartSource("https://charts.example", "", shares_credentials=True),
        ),
        (
            "url: oci://r.example/charts\ntype: oci\ninsecure: true",
            ChartSource("oci://r.example/charts", "", plain_http=True),
        ),
    ],
)
def test_a_helm_repository_is_an_address_alone(spec: str, source: SourceRef) -> None:
    result = declared("HelmRepository", spec)

    assert the_source(result).source == source
    assert result.findings == ()


def test_a_helm_chart_is_a_part_of_another_source() -> None:
    spec = (
        "interval: 1m\nchart: web\nversion: 1.x\nsourceRef: {kind: HelmRepository, name: shop}\n"
        "valuesFiles: [prod.yaml]\nignoreMissingValuesFiles: true"
    )
    result = the_source(declared("HelmChart", spec))

    assert result.source == SourceObject("HelmRepository", "flux-system", "shop", "web", "1.x")
    assert (result.values_files, result.ignore_missing_values_files) == (("prod.yaml",), True)


@pytest.mark.parametrize("kind", ["Bucket", "ExternalArtifact"])
def test_a_source_that_only_a_cluster_has_is_a_problem(kind: str) -> None:
    result = the_source(declared(kind, "interval: 1m\nendpoint: s3.example"))

    assert result.source is None
    assert result.problem


@pytest.mark.parametrize(
    ("kind", "spec", "field", "code"),
    [
        ("GitRepository", "interval: 1m", "spec.url", "flux.required"),
        ("GitRepository", f"url: {URL}", "spec.interval", "flux.required"),
        ("GitRepository", "url: git@git.example:a/b", "spec.url", "flux.address"),
        ("OCIRepository", "url: https://x", "spec.url", "flux.address"),
        ("HelmRepository", "url: oci://x", "spec.url", "flux.address"),
        ("HelmRepository", "url: https://x\ntype: git", "spec.type", "flux.choice"),
        ("HelmChart", "chart: x", "spec.sourceRef.name", "flux.required"),
        ("GitRepository", GIT + "verify: {mode: HEAD}", "spec.verify", "flux.unsupported"),
        ("GitRepository", GIT + "provider: azure", "spec.provider", "flux.unsupported"),
        (
            "GitRepository",
            GIT + "include: [{}]",
            "spec.include[0].repository.name",
            "flux.required",
        ),
        ("GitRepository", GIT + "gitImplementation: go", "spec.gitImplementation", "flux.ignored"),
    ],
)
def test_an_invalid_value_is_reported_with_its_field(
    kind: str, spec: str, field: str, code: str
) -> None:
    result = declared(kind, spec)

    assert (field, code) in [(field_of(finding), finding.code) for finding in result.findings]
    refused = code in {"flux.address", "flux.required"} and field in {
        "spec.url",
        "spec.sourceRef.name",
    }
    assert (the_source(result).source is None) == refused


def test_a_generic_provider_is_the_usual() -> None:
    assert results_by_name(declared("GitRepository", f"{GIT}provider: generic")) == {}


def test_an_old_version_is_reported() -> None:
    assert results_by_name(declared("GitRepository", GIT, "v1beta2")) == {
        "apiVersion": "flux.version"
    }


def test_an_address_with_a_password_is_not_repeated() -> None:
    result = declared("OCIRepository", "interval: 1m\nurl: https://me:hunter2@x")

    assert "hunter2" not in repr(result.findings)


def known(**sources: SourceRef | SourceObject) -> dict[SourceObject, DeclaredSource]:
    ids = {name: SourceObject(name.split("_")[0], "ns", name.split("_")[1]) for name in sources}
    return {
        ids[name]: DeclaredSource(id=ids[name], source=source, secret_name=name)
        for name, source in sources.items()
    }


def test_a_chart_is_filled_into_its_repository() -> None:
    declared = known(HelmRepository_shop=ChartSource("https://c", ""))
    result = resolve_source(SourceObject("HelmRepository", "ns", "shop", "web", "1.x"), declared)

    assert result is not None
    assert result.source == ChartSource("https://c", "web", "1.x")


def test_a_helm_chart_leads_to_a_repository_or_to_a_path_in_a_tree() -> None:
    declared = known(
        HelmRepository_shop=ChartSource("https://c", ""),
        GitRepository_tree=GitSource("https://g"),
        HelmChart_web=SourceObject("HelmRepository", "ns", "shop", "web", "1.x"),
        HelmChart_vendored=SourceObject("GitRepository", "ns", "tree", "charts/web"),
        HelmChart_lost=SourceObject("GitRepository", "ns", "gone", "x"),
    )
    web, vendored, lost = (
        resolve_source(SourceObject("HelmChart", "ns", name), declared)
        for name in ("web", "vendored", "lost")
    )

    assert web is not None
    assert web.source == ChartSource("https://c", "web", "1.x")
    assert web.secret_name == "HelmRepository_shop"
    assert vendored is not None
    assert vendored.source == GitSource("https://g")
    assert vendored.id == SourceObject("HelmChart", "ns", "vendored", "charts/web")
    assert lost is not None
    assert lost.source is None
    assert "GitRepository/ns/gone" in lost.problem


def test_an_undeclared_source_is_not_resolved() -> None:
    assert resolve_source(SourceObject("GitRepository", "ns", "x"), {}) is None


NAMES = (
    *("interval", "url", "ref", "branch", "tag", "semver", "layerSelector", "include"),
    *("repository", "name", "secretRef", "sourceRef", "kind", "chart", "valuesFiles", "verify"),
)


@pytest.mark.parametrize("kind", ["GitRepository", "OCIRepository", "HelmRepository", "HelmChart"])
@given(document=any_spec(*NAMES))
def test_random_fields_never_crash_the_reader(kind: str, document: Document) -> None:
    document.body["kind"] = kind
    for finding in read_flux_source(document, "default").findings:
        assert finding.code.startswith("flux.")
        assert finding.reason
