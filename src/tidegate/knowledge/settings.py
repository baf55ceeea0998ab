"""Which Secrets and ConfigMaps a pod's spec refers to, as variables and as volumes."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.reading import mapping, mappings, text

SECRET = Kind("", "v1", "Secret")
CONFIG_MAP = Kind("", "v1", "ConfigMap")

Part = dict[str, Json]


def settings_of(spec: Part, namespace: str) -> Iterator[Ref]:
    """All Secrets and ConfigMaps that pods of this spec cannot start without."""
    containers = (*mappings(spec, "initContainers"), *mappings(spec, "containers"))
    found = [pair for container in containers for pair in whole_sources(container)]
    found += [
        (kind, reference)
        for container in containers
        for _, kind, reference in single_sources(container)
    ]
    found += [pair for volume in mappings(spec, "volumes") for pair in volume_sources(volume)]
    for kind, reference in found:
        if not reference.get("optional"):
            yield Ref(kind, namespace, text(reference, "name"))


def whole_sources(container: Json) -> Iterator[tuple[Kind, Part]]:
    """What all keys become variables of."""
    for entry in mappings(container, "envFrom"):
        if reference := mapping(entry, "configMapRef"):
            yield CONFIG_MAP, reference
        if reference := mapping(entry, "secretRef"):
            yield SECRET, reference


def single_sources(container: Json) -> Iterator[tuple[str, Kind, Part]]:
    """Each variable that is one key of something, with its name."""
    for variable in mappings(container, "env"):
        origin = mapping(variable, "valueFrom")
        if reference := mapping(origin, "configMapKeyRef"):
            yield text(variable, "name"), CONFIG_MAP, reference
        if reference := mapping(origin, "secretKeyRef"):
            yield text(variable, "name"), SECRET, reference


def volume_sources(volume: Part) -> Iterator[tuple[Kind, Part]]:
    """What is mounted."""
    if secret := mapping(volume, "secret"):
        yield SECRET, {**secret, "name": secret.get("secretName")}
    if settings := mapping(volume, "configMap"):
        yield CONFIG_MAP, settings
    for projected in mappings(volume, "projected", "sources"):
        if secret := mapping(projected, "secret"):
            yield SECRET, secret
        if settings := mapping(projected, "configMap"):
            yield CONFIG_MAP, settings
