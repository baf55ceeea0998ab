"""Applications for tests: a whole one, of which each test changes what it cares about."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.dialect.argo.application import read_application
from tidegate.dialect.argo.source import SourceContext, read_source
from tidegate.dialect.declared import Declarations
from tidegate.documents import Document
from tidegate.errors import Location
from tidegate.model.finding import Finding
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.units.policy import Policy
from tidegate.model.units.rendering import ArgoDetails
from tidegate.model.units.unit import Unit, UnitSource

GIT = "https://git.example/shop.git"
CHARTS = "https://charts.example"
WEB: JsonObject = {"repoURL": GIT, "path": "web"}
OWNER = SourceContext(
    name="web", location=Location("apps.yaml", 1), namespace="shop", project="team"
)


def an_application(metadata: JsonObject | None = None, **spec: Json) -> Document:
    """`web` of the directory `web`, in the namespace `shop`; None takes a field away."""
    whole: JsonObject = {
        "project": "default",
        "source": WEB,
        "destination": {"name": "in-cluster", "namespace": "shop"},
        **spec,
    }
    body: JsonObject = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "web", "namespace": "argocd", **(metadata or {})},
        "spec": {key: item for key, item in whole.items() if item is not None},
    }
    return Document(body, Location("apps.yaml", 7))


def declared(**spec: Json) -> Declarations:
    return read_application(an_application(None, **spec), "default")


def unit(**spec: Json) -> Unit:
    """The unit of an Application that nothing is wrong with."""
    result = declared(**spec)
    assert [str(finding) for finding in result.findings] == []
    return result.units[0]


def policy(**sync: Json) -> Policy:
    return unit(syncPolicy=sync).policy


def a_source(**body: Json) -> UnitSource:
    """A source that nothing is wrong with, read by itself."""
    source, findings = read_source({**WEB, **body}, OWNER)
    assert findings == ()
    assert source is not None
    return source


def details(**body: Json) -> ArgoDetails:
    result = a_source(**body).details
    assert isinstance(result, ArgoDetails)
    return result


def codes(findings: Iterable[Finding]) -> list[str]:
    """Findings as `error argo.ref at spec.sources[1].ref`."""
    return [
        f"{finding.severity} {finding.code} at {finding.location.field if finding.location else ''}"
        for finding in findings
    ]
