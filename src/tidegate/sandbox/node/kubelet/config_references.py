"""Secrets and ConfigMaps that a container needs to start, as variables and as volumes."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.knowledge import references, settings
from tidegate.model.k8s.json_fields import get_mappings, get_text
from tidegate.model.k8s.kinds import CONFIG_MAP, SECRET
from tidegate.model.k8s.objects import Json, JsonObject, Kind, Ref
from tidegate.sandbox.controllers.interface import ObjectReader
from tidegate.sandbox.server.store import StoredObject

KIND_WORDS = {SECRET: "secret", CONFIG_MAP: "configmap"}
MISSING_KEY_MESSAGES = {
    SECRET: "references non-existent secret key: {}",
    CONFIG_MAP: "configmap references non-existent config key: {}",
}
"""The kubelet's message for a missing key of a volume, by kind.

Like `MakePayload` in `pkg/volume/secret/secret.go` and `MakePayload` in
`pkg/volume/configmap/configmap.go` of Kubernetes 1.36.4.
"""


def missing_variable(reader: ObjectReader, pod: StoredObject, container: Json) -> str:
    """Return the kubelet's message for the first variable without a value; empty for none.

    Like `makeEnvironmentVariables` in `pkg/kubelet/kubelet_pods.go` of Kubernetes 1.36.4.
    """
    namespace = pod.ref.namespace
    for kind, reference in references.list_env_from_sources(container):
        if (
            not reference.get("optional")
            and _find_source(reader, kind, namespace, reference) is None
        ):
            return _not_found_message(kind, reference)
    for _, kind, reference in references.list_env_key_sources(container):
        problem = _missing_key(reader, kind, namespace, reference)
        if problem and not reference.get("optional"):
            return problem
    return ""


def missing_volume(reader: ObjectReader, pod: StoredObject) -> tuple[str, str]:
    """Return the first volume that cannot be mounted, and why; two empty strings for none.

    Like `MakePayload` in `pkg/volume/secret/secret.go` and `MakePayload` in
    `pkg/volume/configmap/configmap.go` of Kubernetes 1.36.4.
    """
    for volume in get_mappings(pod.body, "spec", "volumes"):
        for kind, reference in references.list_volume_sources(volume):
            problem = _mount_problem(reader, kind, pod.ref.namespace, reference)
            if problem and not reference.get("optional"):
                return get_text(volume, "name"), problem
    return "", ""


def container_variables(
    reader: ObjectReader, pod: StoredObject, container: Json
) -> Iterator[settings.Variable]:
    """Yield the variables of a container with their values, as far as they are known."""

    def find(kind: Kind, name: str) -> JsonObject | None:
        stored = reader.get(Ref(kind, pod.ref.namespace, name))
        return stored.body if stored else None

    return settings.list_variables(container, find)


def _find_source(
    reader: ObjectReader, kind: Kind, namespace: str, reference: JsonObject
) -> StoredObject | None:
    return reader.get(Ref(kind, namespace, get_text(reference, "name")))


def _not_found_message(kind: Kind, reference: JsonObject) -> str:
    return f'{KIND_WORDS[kind]} "{get_text(reference, "name")}" not found'


def _missing_key(reader: ObjectReader, kind: Kind, namespace: str, reference: JsonObject) -> str:
    source = _find_source(reader, kind, namespace, reference)
    if source is None:
        return _not_found_message(kind, reference)
    key, name = get_text(reference, "key"), get_text(reference, "name")
    if settings.has_open_keys(source.body) or key in settings.get_data(
        source.body, include_binary=False
    ):
        return ""
    return f"couldn't find key {key} in {kind.name} {namespace}/{name}"


def _mount_problem(reader: ObjectReader, kind: Kind, namespace: str, reference: JsonObject) -> str:
    source = _find_source(reader, kind, namespace, reference)
    if source is None:
        return _not_found_message(kind, reference)
    if settings.has_open_keys(source.body):
        return ""
    keys = settings.get_data(source.body)
    for item in get_mappings(reference, "items"):
        if get_text(item, "key") not in keys:
            return MISSING_KEY_MESSAGES[kind].format(get_text(item, "key"))
    return ""
