"""Errors of artifact generators are reported at their fields, before anything is generated."""

from __future__ import annotations

import pytest

from tests.support.recorded_wording import RecordedWording
from tidegate.dialect.flux.artifact_generator import read_artifact_generator
from tidegate.documents import read_documents
from tidegate.documents.dump import to_json
from tidegate.model.finding import Severity
from tidegate.model.k8s.objects import Json

BAD: dict[str, tuple[str, str, str]] = {
    "alias": ("@none/teams/{app}", "{app}", "pathPattern"),
    "open": ("@repo/teams/{app", "{app}", "pathPattern"),
    "empty": ("@repo/teams/{}", "x", "pathPattern"),
    "twice": ("@repo/{app}/{app}", "{app}", "pathPattern"),
    "label": ("@repo/teams/{_app}", "{_app}", "pathPattern"),
    "strange": ("@repo/teams/{app}", "{b}", "artifacts[0].name"),
}


def generator(pattern: str, name: str, source: str = "@repo/teams/{app}/**") -> Json:
    return {
        "apiVersion": "source.extensions.fluxcd.io/v1beta1",
        "kind": "ArtifactGenerator",
        "metadata": {"name": "parts", "namespace": "apps"},
        "spec": {
            "sources": [{"alias": "repo", "kind": "GitRepository", "name": "platform"}],
            "pathPattern": pattern,
            "artifacts": [{"name": name, "copy": [{"from": source, "to": "@artifact/"}]}],
        },
    }


@pytest.mark.parametrize("which", BAD)
def test_an_invalid_pattern_is_an_error_at_its_field(which: str, wording: RecordedWording) -> None:
    pattern, name, field = BAD[which]
    source = "@repo/teams/**" if which != "strange" else "@repo/teams/{app}/**"
    (document,) = read_documents(to_json(generator(pattern, name, source)), "a.yaml")

    artifact_generator = read_artifact_generator(document, "apps")

    errors = [
        finding for finding in artifact_generator.findings if finding.severity is Severity.ERROR
    ]
    fields = [error.location.field for error in errors if error.location is not None]
    assert f"spec.{field}" in fields
    wording(f"{at}: {error.message}" for at, error in zip(fields, errors, strict=True))
    assert all(error.code == "flux.artifact" for error in errors)


def test_a_pattern_names_its_source_and_what_is_made_of_each_directory() -> None:
    (document,) = read_documents(to_json(generator("@repo/teams/{app}", "{app}-x")), "a.yaml")

    (made,) = read_artifact_generator(document, "apps").sources

    assert made.discovery is not None
    assert (made.discovery.pattern, made.discovery.name) == ("teams/{app}", "{app}-x")
    assert str(made.discovery.source) == "GitRepository/apps/platform"
    assert made.problem == ""
