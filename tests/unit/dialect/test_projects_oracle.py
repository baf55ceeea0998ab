"""What projects allow here against what the real Argo CD says of the same ones.

`python -m tests.oracles.argo_health.projects` asks it again; that needs Go.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec

from tidegate.dialect.argo.application import read_application
from tidegate.dialect.argo.permits import (
    refuse_destination,
    refuse_home,
    refuse_object,
    refuse_source,
    windows_for,
)
from tidegate.dialect.argo.projects import read_project
from tidegate.documents import Document
from tidegate.errors import Place
from tidegate.model.moment import Ms
from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.project import ProjectClaim, Reach
from tidegate.model.reading import listed, mapping, mappings, text
from tidegate.model.sync_window import find_holder

ANSWERS = Path(__file__).parents[2] / "data" / "projects" / "argo.jsonl.gz"
RECORDED: list[dict[str, Json]] = [
    msgspec.json.decode(line) for line in gzip.decompress(ANSWERS.read_bytes()).splitlines()
]
HERE = Place("all.yaml", 1)


def claim_of(body: dict[str, Json]) -> ProjectClaim:
    kind: dict[str, Json] = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}
    (unit,) = read_application(Document({**kind, **body}, HERE), "argocd").units
    assert unit.claim is not None
    return unit.claim


def reach_of(asked: dict[str, Json]) -> Reach:
    project, _ = read_project(Document(mapping(asked, "project"), HERE), "argocd", lambda _: HERE)
    cluster = mapping(asked, "cluster")
    return Reach(project=project, server=text(cluster, "server"), cluster=text(cluster, "name"))


def ref_of(body: dict[str, Json]) -> Ref:
    kind = Kind(text(body, "group"), "v1", text(body, "kind"))
    return Ref(kind, text(body, "namespace"), text(body, "name"))


def test_sources_homes_and_destinations_are_allowed_where_argo_cd_allows_them() -> None:
    for row in RECORDED:
        asked, told = mapping(row, "asked"), mapping(row, "told")
        reach, claim = reach_of(asked), claim_of(mapping(asked, "application"))
        home = text(asked, "application", "metadata", "namespace")
        url = text(asked, "application", "spec", "source", "repoURL")

        assert (refuse_source(reach.project, url) is None) == told["source"], row
        assert (refuse_home(reach.project, home) is None) == told["home"], row
        assert (refuse_destination(reach, claim.namespace) is None) == told["destination"], row


def test_objects_are_allowed_where_argo_cd_allows_them() -> None:
    for row in RECORDED:
        asked, told = mapping(row, "asked"), mapping(row, "told")
        reach, refs = reach_of(asked), [ref_of(one) for one in mappings(asked, "objects")]

        allowed = [not refuse_object(reach, ref, namespaced=bool(ref.namespace)) for ref in refs]

        assert allowed == told["objects"], row


def test_windows_hold_when_argo_cd_is_held() -> None:
    held = 0
    for row in RECORDED:
        asked, told = mapping(row, "asked"), mapping(row, "told")
        reach, claim = reach_of(asked), claim_of(mapping(asked, "application"))
        windows = windows_for(reach.project, claim, text(asked, "application", "metadata", "name"))
        for at, automated, manual in zip(
            listed(asked, "moments"), listed(told, "automated"), listed(told, "manual"), strict=True
        ):
            assert isinstance(at, int)
            found = [find_holder(windows, Ms(at), asked=by) for by in (False, True)]
            assert [one is None for one in found] == [automated, manual], (row, at)
            held += sum(one is not None for one in found)

    assert held > len(RECORDED), "windows that never hold prove nothing"
