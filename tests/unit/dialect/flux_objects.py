"""Custom resources of Flux as a repository has them, and whatever else could stand there."""

from __future__ import annotations

from hypothesis import strategies as st

from tidegate.dialect.declared import Declarations
from tidegate.documents import Document, read_documents
from tidegate.errors import Location
from tidegate.model.finding import Finding
from tidegate.model.k8s.objects import Json
from tidegate.model.units.unit import Unit

KUSTOMIZE = "kustomize.toolkit.fluxcd.io"
HELM = "helm.toolkit.fluxcd.io"
SOURCE = "source.toolkit.fluxcd.io"


def an_object(api: str, kind: str, spec: str, *, name: str = "apps") -> Document:
    """An object `flux-system/apps` whose spec is this YAML."""
    indented = "\n".join(f"  {line}" for line in spec.strip().splitlines())
    head = f"apiVersion: {api}\nkind: {kind}\nmetadata: {{name: {name}, namespace: flux-system}}"
    (document,) = read_documents(f"{head}\nspec:\n{indented}\n".encode(), "apps.yaml")
    return document


def the_unit(declared: Declarations) -> Unit:
    (unit,) = declared.units
    return unit


def results_by_name(declared: Declarations) -> dict[str, str]:
    """The codes of what was found, by the fields."""
    return {field_of(finding): finding.code for finding in declared.findings}


def field_of(finding: Finding) -> str:
    return finding.location.field if finding.location else ""


def any_spec(*names: str) -> st.SearchStrategy[Document]:
    """Objects with any JSON for a spec, most of it under names that are read."""
    keys = st.sampled_from(names) | st.text(max_size=3)
    texts = st.sampled_from(["", "5m", "../x", "GitRepository", "HelmRepository", "apps"])
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | texts | st.text(max_size=3)
    spec: st.SearchStrategy[Json] = st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=6),
        max_leaves=25,
    )
    versions = st.sampled_from(["v1", "v2", "v1beta1", "v2beta2", "", "x/v9"])
    named: Json = {"name": "apps"}
    return st.builds(_any_document, versions, st.just(named) | spec, spec)


def _any_document(version: str, metadata: Json, spec: Json) -> Document:
    body = {"apiVersion": version, "kind": "HelmChart", "metadata": metadata, "spec": spec}
    return Document(body, Location("any.yaml", 1))
