"""Which kinds a cluster serves, and how they are spoken of in URLs.

Read in two requests (aggregated discovery, Kubernetes 1.27 and newer). Read again when somebody
asks for a kind that is not known, since its CRD may have arrived a moment ago.
"""

from __future__ import annotations

import msgspec

from tidegate.kube.replies import Reply
from tidegate.model.objects import Kind, Served

ACCEPT = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    for version in ("v2", "v2beta1")
)
ROOTS = ("/api", "/apis")


class _ResponseKind(msgspec.Struct):
    kind: str = ""


class _Subresource(msgspec.Struct):
    subresource: str = ""


class _Resource(msgspec.Struct, rename="camel"):
    resource: str
    scope: str = ""
    response_kind: _ResponseKind | None = None
    verbs: tuple[str, ...] = ()
    subresources: tuple[_Subresource, ...] = ()


class _Version(msgspec.Struct):
    version: str
    resources: tuple[_Resource, ...] = ()


class _Meta(msgspec.Struct):
    name: str = ""


class _Group(msgspec.Struct):
    metadata: _Meta
    versions: tuple[_Version, ...] = ()


class _Groups(msgspec.Struct):
    items: tuple[_Group, ...]


_decode = msgspec.json.Decoder(_Groups).decode


def read_kinds(reply: Reply) -> tuple[Served, ...]:
    """The kinds of one root, in the server's own order: the preferred version of a group first."""
    return tuple(
        Served(
            kind=Kind(group.metadata.name, version.version, resource.response_kind.kind),
            plural=resource.resource,
            namespaced=resource.scope == "Namespaced",
            verbs=tuple(sorted(resource.verbs)),
            subresources=tuple(sorted(sub.subresource for sub in resource.subresources)),
        )
        for group in _decode(reply.body).items
        for version in group.versions
        for resource in version.resources
        if resource.response_kind and resource.response_kind.kind
    )
