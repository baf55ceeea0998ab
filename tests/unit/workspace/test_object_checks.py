"""Errors of custom resources, as findings with the line of their field."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.support.recorded_wording import RecordedWording
from tidegate.documents import read_documents
from tidegate.documents.dump import to_json
from tidegate.errors import Location
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.objects import Json
from tidegate.schema import causes
from tidegate.workspace.discovery.object_checks import check_objects
from tidegate.workspace.locations import FieldLocator, SourceFile
from tidegate.world.messages import Cause

TEXT = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: shop
spec:
  project: default
  destination:
    namespaces: shop
  syncPolicy:
    automated:
      prune: "yes"
---
apiVersion: v1
kind: List
items:
- apiVersion: kustomize.toolkit.fluxcd.io/v1
  kind: Kustomization
  metadata: {name: apps}
  spec:
    interval: 1m
    prune: true
"""
SOURCE = "github.com/argoproj/argo-cd/v3@v3.5.6"


def check(text: str, name: str = "shop.yaml") -> tuple[Finding, ...]:
    return check_objects(read_documents(text, name), lambda name: SourceFile(name, text.encode()))


def test_each_finding_has_the_line_of_its_field() -> None:
    refused, unknown, missing = check(TEXT)

    assert (refused.code, refused.severity) == ("schema.refused", Severity.ERROR)
    assert refused.location == Location("shop.yaml", 15, 7, "spec.syncPolicy.automated.prune")
    assert "Application `shop`" in refused.message
    assert (unknown.code, unknown.severity) == ("schema.unknown", Severity.WARNING)
    assert unknown.location == Location("shop.yaml", 12, 5, "spec.destination.namespaces")
    assert "`namespace`" in unknown.fix
    assert SOURCE in unknown.reason
    assert missing.location == Location("shop.yaml", 23, 3, "spec.sourceRef")


def test_a_version_that_there_is_not_is_an_error() -> None:
    (finding,) = check("apiVersion: argoproj.io/v2\nkind: Application\nmetadata: {name: a}\n")

    assert finding.severity is Severity.ERROR
    assert finding.location == Location("shop.yaml", 1, 1, "apiVersion")
    assert "`argoproj.io/v1alpha1`" in finding.message


def test_a_rendered_object_keeps_its_location() -> None:
    document = read_documents(TEXT, "shop.yaml")[1]
    made = msgspec.structs.replace(document, body={**document.body, "extra": 1})

    findings = check_objects([made], lambda name: SourceFile(name, TEXT.encode()))

    assert {
        (finding.location.name, finding.location.line) for finding in findings if finding.location
    } == {("shop.yaml", 5)}
    assert [finding.location.field for finding in findings if finding.location] == [
        "spec.syncPolicy.automated.prune",
        "spec.destination.namespaces",
        "extra",
    ]


def test_a_file_on_disk_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    path.write_text(TEXT)

    findings = check_objects(
        read_documents(path.read_bytes(), path.name), FieldLocator(path.parent).file
    )

    assert [finding.location.line for finding in findings if finding.location] == [15, 12, 23]


def test_without_its_file_the_location_of_the_object_is_kept() -> None:
    findings = check_objects(read_documents(TEXT, "no/such/file.yaml"), FieldLocator(Path()).file)

    assert [finding.location.line for finding in findings if finding.location] == [5, 5, 20]


def test_nothing_is_found_in_what_is_right() -> None:
    assert check("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n") == ()


APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web}
spec:
"""


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"project": None}, "refused at spec.project"),
        ({"destination": None}, "refused at spec.destination"),
        ({"syncpolicy": {}}, "unknown at spec.syncpolicy"),
        ({"syncPolicy": []}, "refused at spec.syncPolicy"),
        ({"syncPolicy": {"automated": True}}, "refused at spec.syncPolicy.automated"),
        ({"sources": ["web"]}, "refused at spec.sources[0]"),
        ({"source": {"repoURL": "a", "path": 3}}, "refused at spec.source.path"),
        (
            {"source": {"repoURL": "a", "kustomize": {"oops": 1}}},
            "unknown at spec.source.kustomize",
        ),
        ({"revisionHistoryLimit": "3"}, "refused at spec.revisionHistoryLimit"),
        ({"info": [{"name": "a"}]}, "refused at spec.info[0].value"),
        ({"ignoreDifferences": [{}]}, "refused at spec.ignoreDifferences[0].kind"),
        ({"sourceHydrator": {"syncSource": {}}}, "refused at spec.sourceHydrator.drySource"),
    ],
)
def test_an_error_of_an_application_is_reported_once(spec: dict[str, Json], expected: str) -> None:
    whole = {"project": "default", "destination": {}, **spec}
    kept = {name: item for name, item in whole.items() if item is not None}
    text = APPLICATION + "".join(
        f"  {name}: {to_json(item).decode()}\n" for name, item in kept.items()
    )

    matches = [
        f"{item.code.split('.')[1]} at {item.location.field}"
        for item in check(text)
        if item.location
    ]

    assert sum(item.startswith(expected) for item in matches) == 1, matches


def test_text_that_yaml_reads_as_a_number_is_to_be_put_in_quotes(wording: RecordedWording) -> None:
    (finding,) = check(
        f"{APPLICATION}  project: a\n  destination: {{}}\n"
        "  source: {repoURL: a, targetRevision: 1.2}\n"
    )

    assert str(finding.location) == "shop.yaml:7:24 (spec.source.targetRevision)"
    wording(finding.fix)


def test_quotes_are_suggested_for_any_type_error(
    monkeypatch: pytest.MonkeyPatch, wording: RecordedWording
) -> None:
    reworded = Cause("spec.sources[0].targetRevision", "FieldValueTypeInvalid", "not this type")
    monkeypatch.setattr(causes, "type_invalid", lambda *_: reworded)

    (finding,) = check(
        f"{APPLICATION}  project: a\n  destination: {{}}\n"
        "  sources: [{repoURL: a, targetRevision: 1.2}]\n"
    )

    assert finding.message.endswith(": not this type")
    wording(finding.fix)
