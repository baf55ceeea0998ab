"""What a container cannot start without: Secrets and ConfigMaps, as variables and as volumes."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import NamedTuple

from tidegate.model.objects import Json, Kind, Ref
from tidegate.model.reading import mapping, mappings, part, text
from tidegate.sandbox.controllers.reaction import View
from tidegate.sandbox.server.store import Stored

SECRET = Kind("", "v1", "Secret")
CONFIG_MAP = Kind("", "v1", "ConfigMap")

OPEN_KEYS = "sandbox.tidegate.dev/open-keys"
"""On a Secret that stands for one whose keys nobody here can know: it has every key."""

Part = dict[str, Json]


class Source(NamedTuple):
    """One of the two kinds that hold settings, and how a kubelet speaks of it."""

    kind: Kind
    word: str
    absent_key: str


SECRETS = Source(SECRET, "secret", "references non-existent secret key: {}")
CONFIG_MAPS = Source(CONFIG_MAP, "configmap", "configmap references non-existent config key: {}")


def missing_setting(view: View, pod: Stored, container: Json) -> str:
    """The first variable that has no value, in a kubelet's words; empty where all have one."""
    namespace = pod.ref.namespace
    for source, reference in _whole_sources(container):
        if not reference.get("optional") and _found(view, source, namespace, reference) is None:
            return _absent(source, reference)
    for _, source, reference in _single_sources(container):
        trouble = _missing_key(view, source, namespace, reference)
        if trouble and not reference.get("optional"):
            return trouble
    return ""


def missing_volume(view: View, pod: Stored) -> tuple[str, str]:
    """The first volume that cannot be mounted and why, or two empty texts."""
    for volume in mappings(pod.body, "spec", "volumes"):
        for source, reference in _volume_sources(volume):
            trouble = _unmountable(view, source, pod.ref.namespace, reference)
            if trouble and not reference.get("optional"):
                return text(volume, "name"), trouble
    return "", ""


def settings_of(spec: Part, namespace: str) -> Iterator[Ref]:
    """All Secrets and ConfigMaps that pods of this spec cannot start without."""
    containers = (*mappings(spec, "initContainers"), *mappings(spec, "containers"))
    found = [pair for container in containers for pair in _whole_sources(container)]
    found += [
        (source, reference)
        for container in containers
        for _, source, reference in _single_sources(container)
    ]
    found += [pair for volume in mappings(spec, "volumes") for pair in _volume_sources(volume)]
    for source, reference in found:
        if not reference.get("optional"):
            yield Ref(source.kind, namespace, text(reference, "name"))


def variables_of(view: View, pod: Stored, container: Json) -> Iterator[tuple[str, str]]:
    """The variables of a container with their values, as far as they are known."""
    namespace = pod.ref.namespace
    for source, reference in _whole_sources(container):
        found = _found(view, source, namespace, reference)
        for key in _keys(found) if found else ():
            yield key, _value(found, source, key)
    for name, source, reference in _single_sources(container):
        found = _found(view, source, namespace, reference)
        yield name, _value(found, source, text(reference, "key"))
    for variable in mappings(container, "env"):
        if value := text(variable, "value"):
            yield text(variable, "name"), value


def _whole_sources(container: Json) -> Iterator[tuple[Source, Part]]:
    for entry in mappings(container, "envFrom"):
        if reference := mapping(entry, "configMapRef"):
            yield CONFIG_MAPS, reference
        if reference := mapping(entry, "secretRef"):
            yield SECRETS, reference


def _single_sources(container: Json) -> Iterator[tuple[str, Source, Part]]:
    for variable in mappings(container, "env"):
        origin = mapping(variable, "valueFrom")
        if reference := mapping(origin, "configMapKeyRef"):
            yield text(variable, "name"), CONFIG_MAPS, reference
        if reference := mapping(origin, "secretKeyRef"):
            yield text(variable, "name"), SECRETS, reference


def _volume_sources(volume: Part) -> Iterator[tuple[Source, Part]]:
    if secret := mapping(volume, "secret"):
        yield SECRETS, {**secret, "name": secret.get("secretName")}
    if settings := mapping(volume, "configMap"):
        yield CONFIG_MAPS, settings
    for projected in mappings(volume, "projected", "sources"):
        if secret := mapping(projected, "secret"):
            yield SECRETS, secret
        if settings := mapping(projected, "configMap"):
            yield CONFIG_MAPS, settings


def _found(view: View, source: Source, namespace: str, reference: Part) -> Stored | None:
    return view.get(Ref(source.kind, namespace, text(reference, "name")))


def _absent(source: Source, reference: Part) -> str:
    return f'{source.word} "{text(reference, "name")}" not found'


def _missing_key(view: View, source: Source, namespace: str, reference: Part) -> str:
    found = _found(view, source, namespace, reference)
    if found is None:
        return _absent(source, reference)
    key, name = text(reference, "key"), text(reference, "name")
    if _is_open(found) or key in _keys(found, binary=False):
        return ""
    return f"couldn't find key {key} in {source.kind.name} {namespace}/{name}"


def _unmountable(view: View, source: Source, namespace: str, reference: Part) -> str:
    found = _found(view, source, namespace, reference)
    if found is None:
        return _absent(source, reference)
    if _is_open(found):
        return ""
    held = _keys(found)
    for item in mappings(reference, "items"):
        if text(item, "key") not in held:
            return source.absent_key.format(text(item, "key"))
    return ""


def _is_open(found: Stored) -> bool:
    return mapping(found.metadata, "annotations").get(OPEN_KEYS) == "true"


def _keys(found: Stored, *, binary: bool = True) -> dict[str, Json]:
    keys = {**mapping(found.body, "data"), **mapping(found.body, "stringData")}
    return {**mapping(found.body, "binaryData"), **keys} if binary else keys


def _value(found: Stored | None, source: Source, key: str) -> str:
    """A value to look for hosts in. It is compared and never shown."""
    if found is None:
        return ""
    written = part(found.body, "stringData", key) or part(found.body, "data", key)
    if not isinstance(written, str):
        return ""
    if source is CONFIG_MAPS or part(found.body, "stringData", key):
        return written
    try:
        return base64.b64decode(written).decode(errors="replace")
    except binascii.Error:
        return ""
