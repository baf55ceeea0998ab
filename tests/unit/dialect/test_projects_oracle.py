"""What projects allow here against what the real Argo CD says of the same ones.

`python -m tests.conformance.oracles.argo_health.projects` asks it again; that needs Go.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec

from tidegate.dialect.argo.application import read_application
from tidegate.dialect.argo.project_permissions import (
    check_application_namespace,
    check_destination,
    check_object,
    check_source,
    sync_windows_for,
)
from tidegate.dialect.argo.projects import read_project
from tidegate.documents import Document
from tidegate.errors import Location
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text
from tidegate.model.k8s.objects import Json, Kind, Ref
from tidegate.model.times import Ms
from tidegate.model.units.project import ProjectRequest, ProjectScope
from tidegate.model.units.sync_window import find_blocking_window

ANSWERS = Path(__file__).parents[2] / "data" / "projects" / "argo.jsonl.gz"
RECORDED: list[dict[str, Json]] = [
    msgspec.json.decode(line) for line in gzip.decompress(ANSWERS.read_bytes()).splitlines()
]
HERE = Location("all.yaml", 1)


def claim_of(body: dict[str, Json]) -> ProjectRequest:
    kind: dict[str, Json] = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}
    (unit,) = read_application(Document({**kind, **body}, HERE), "argocd").units
    assert unit.project_request is not None
    return unit.project_request


def reach_of(request: dict[str, Json]) -> ProjectScope:
    project, _ = read_project(
        Document(get_mapping(request, "project"), HERE), "argocd", lambda _: HERE
    )
    cluster = get_mapping(request, "cluster")
    return ProjectScope(
        project=project, server=get_text(cluster, "server"), cluster=get_text(cluster, "name")
    )


def ref_of(body: dict[str, Json]) -> Ref:
    kind = Kind(get_text(body, "group"), "v1", get_text(body, "kind"))
    return Ref(kind, get_text(body, "namespace"), get_text(body, "name"))


def test_sources_homes_and_destinations_are_allowed_where_argo_cd_allows_them() -> None:
    for row in RECORDED:
        mapping, result = get_mapping(row, "asked"), get_mapping(row, "told")
        reach, claim = reach_of(mapping), claim_of(get_mapping(mapping, "application"))
        namespace = get_text(mapping, "application", "metadata", "namespace")
        url = get_text(mapping, "application", "spec", "source", "repoURL")

        assert (check_source(reach.project, url) is None) == result["source"], row
        assert (check_application_namespace(reach.project, namespace) is None) == result["home"], (
            row
        )
        assert (check_destination(reach, claim.namespace) is None) == result["destination"], row


def test_objects_are_allowed_where_argo_cd_allows_them() -> None:
    for row in RECORDED:
        mapping, result = get_mapping(row, "asked"), get_mapping(row, "told")
        reach, refs = reach_of(mapping), [ref_of(item) for item in get_mappings(mapping, "objects")]

        allowed = [not check_object(reach, ref, namespaced=bool(ref.namespace)) for ref in refs]

        assert allowed == result["objects"], row


def test_windows_hold_when_argo_cd_is_held() -> None:
    held = 0
    for row in RECORDED:
        mapping, result = get_mapping(row, "asked"), get_mapping(row, "told")
        reach, claim = reach_of(mapping), claim_of(get_mapping(mapping, "application"))
        windows = sync_windows_for(
            reach.project, claim, get_text(mapping, "application", "metadata", "name")
        )
        for at, automated, manual in zip(
            get_list(mapping, "moments"),
            get_list(result, "automated"),
            get_list(result, "manual"),
            strict=True,
        ):
            assert isinstance(at, int)
            matches = [find_blocking_window(windows, Ms(at), is_manual=by) for by in (False, True)]
            assert [item is None for item in matches] == [automated, manual], (row, at)
            held += sum(item is not None for item in matches)

    assert held > len(RECORDED), "windows that never hold prove nothing"
