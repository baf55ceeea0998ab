"""What is wrong with a generator of artifacts is told at its field, before anything is made."""

from __future__ import annotations

import pytest

from tidegate.dialect.flux.artifact_generator import read_artifact_generator
from tidegate.documents import read_documents
from tidegate.documents.dump import to_json
from tidegate.model.finding import Severity
from tidegate.model.k8s.objects import Json

BAD: dict[str, tuple[str, str, str, str]] = {
    "alias": ("@none/teams/{app}", "{app}", "pathPattern", "names no source of the generator"),
    "open": ("@repo/teams/{app", "{app}", "pathPattern", "has a brace without the other one"),
    "empty": ("@repo/teams/{}", "x", "pathPattern", "has no name between two braces"),
    "twice": ("@repo/{app}/{app}", "{app}", "pathPattern", "has a name in braces twice"),
    "label": ("@repo/teams/{_app}", "{_app}", "pathPattern", "has `_app`, which cannot be the key"),
    "strange": ("@repo/teams/{app}", "{b}", "artifacts[0].name", "has `{b}`, which `pathPattern`"),
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
def test_a_pattern_that_is_not_written_well_is_an_error_at_its_field(which: str) -> None:
    pattern, name, field, sentence = BAD[which]
    source = "@repo/teams/**" if which != "strange" else "@repo/teams/{app}/**"
    (document,) = read_documents(to_json(generator(pattern, name, source)), "a.yaml")

    artifact_generator = read_artifact_generator(document, "apps")

    errors = [
        finding for finding in artifact_generator.findings if finding.severity is Severity.ERROR
    ]
    assert any(
        error.location is not None
        and error.location.field == f"spec.{field}"
        and sentence in error.message
        for error in errors
    ), errors
    assert all(error.code == "flux.artifact" for error in errors)


def test_a_pattern_names_its_source_and_what_is_made_of_each_directory() -> None:
    (document,) = read_documents(to_json(generator("@repo/teams/{app}", "{app}-x")), "a.yaml")

    (made,) = read_artifact_generator(document, "apps").sources

    assert made.discovery is not None
    assert (made.discovery.pattern, made.discovery.name) == ("teams/{app}", "{app}-x")
    assert str(made.discovery.source) == "GitRepository/apps/platform"
    assert made.problem == ""
