"""What Flux's controllers are told in their Deployments, where these stand in the repository."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.documents import Document
from tidegate.documents.document import path_text
from tidegate.model.config import Switch
from tidegate.model.objects import Json, Kind
from tidegate.model.reading import listed, mapping, text

CONTROLLERS = ("kustomize-controller", "helm-controller", "source-controller")
GATES = "feature-gates"
SWITCHES = ("no-cross-namespace-refs", "no-remote-bases")
"""Flags that need no value."""
FLAGS = (
    *("concurrent", "custom-apply-stage-kinds", "default-service-account", GATES),
    *("requeue-dependency", *SWITCHES),
)
"""What is read: what changes an order, a pace, or somebody's rights."""
PART_OF, COMPONENT = "app.kubernetes.io/part-of", "app.kubernetes.io/component"
SPOT = ("spec", "template", "spec", "containers")


def read_settings(documents: Iterable[Document]) -> tuple[Switch, ...]:
    """All that the controllers among these are told, in that order; the last word counts."""
    return tuple(setting for document in documents for setting in _of_deployment(document))


def _of_deployment(document: Document) -> Iterator[Switch]:
    body = document.body
    kind = Kind.of(text(body, "apiVersion"), text(body, "kind"))
    if (kind.group, kind.name) != ("apps", "Deployment"):
        return
    labels = mapping(body, "metadata", "labels")
    is_flux = text(labels, PART_OF) == "flux"
    names = (text(labels, COMPONENT), text(body, "metadata", "name")) if is_flux else ()
    for index, container in enumerate(listed(body, *SPOT)):
        own = (text(container, "name"), _program(text(container, "image")))
        controller = next((one for one in (*own, *names) if one in CONTROLLERS), "")
        for at, word, value in _told(listed(container, "args")) if controller else ():
            field = path_text((*SPOT, index, "args", at))
            yield Switch(f"{controller}.{word}", value, document.place.at(field))


def _program(image: str) -> str:
    """`ghcr.io/fluxcd/helm-controller:v1.6.3` is a `helm-controller`."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]


def _told(arguments: list[Json]) -> Iterator[tuple[int, str, str]]:
    """Flags with their values, `--concurrent=8` or `--concurrent 8`, and gates one by one."""
    for at, argument in enumerate(arguments):
        if not isinstance(argument, str) or not argument.startswith("--"):
            continue
        word, sign, value = argument.removeprefix("--").partition("=")
        if word not in FLAGS:
            continue
        if not sign:
            value = "true" if word in SWITCHES else _at(arguments, at + 1)
        if word != GATES:
            yield at, word, value
            continue
        for gate in filter(None, value.split(",")):
            name, _, state = gate.partition("=")
            yield at, f"{GATES}.{name.strip()}", state.strip() or "true"


def _at(arguments: list[Json], index: int) -> str:
    found = arguments[index] if index < len(arguments) else None
    return found if isinstance(found, str) else ""
