"""FluxInstances of Flux Operator: the source and the Kustomization that one of them creates."""

from __future__ import annotations

from msgspec.structs import replace

from tidegate.dialect.declared import Declarations
from tidegate.dialect.flux.field_reader import FluxResource, open_resource
from tidegate.dialect.flux.kustomization import read_kustomization
from tidegate.dialect.flux.sources import GIT, read_flux_source
from tidegate.documents import Document
from tidegate.model.k8s.objects import Json

KUSTOMIZE_VERSION, SOURCE_VERSION = "kustomize.toolkit.fluxcd.io/v1", "source.toolkit.fluxcd.io/v1"
INTERVAL = "10m"


def read_flux_instance(document: Document, namespace: str) -> Declarations:
    """Read what a FluxInstance with `sync` creates; `namespace` is used if it has none.

    flux-operator v0.33, internal/builder/templates.go (`syncTmpl`): both objects have the name in
    `sync.name`, by default that of the namespace. An OCIRepository or a Bucket is not declared
    here: its artifact is pushed from the repository that contains the FluxInstance.
    """
    resource = open_resource(document, namespace)
    sync = resource.spec.child("sync")
    kind, path = sync.text("kind"), sync.text("path")
    if not resource.name or not kind:
        return Declarations()
    name = sync.text("name") or resource.namespace
    kustomization: dict[str, Json] = {
        "interval": INTERVAL,
        "path": path,
        "prune": True,
        "sourceRef": {"kind": kind, "name": name},
    }
    declared = [
        read_kustomization(
            _created(document, resource, KUSTOMIZE_VERSION, "Kustomization", name, kustomization),
            resource.namespace,
        )
    ]
    if kind == GIT:
        source: dict[str, Json] = {
            "interval": sync.text("interval") or INTERVAL,
            "url": sync.text("url"),
            "ref": {"name": sync.text("ref")},
            "secretRef": {"name": sync.text("pullSecret")},
        }
        declared.append(
            read_flux_source(
                _created(document, resource, SOURCE_VERSION, GIT, name, source), resource.namespace
            )
        )
    return replace(Declarations.merge(declared), findings=())


def _created(
    document: Document,
    resource: FluxResource,
    version: str,
    kind: str,
    name: str,
    spec: dict[str, Json],
) -> Document:
    """Return an object that Flux Operator creates, at the location of its FluxInstance."""
    metadata: dict[str, Json] = {"name": name, "namespace": resource.namespace}
    body: dict[str, Json] = {
        "apiVersion": version,
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    }
    return Document(body, document.location)
