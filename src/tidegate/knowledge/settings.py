"""What stands in Secrets and ConfigMaps: their keys, and the variables that come of them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator

from tidegate.knowledge.references import CONFIG_MAP, list_env_from_sources, list_env_key_sources
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import Json, JsonObject, Kind

OPEN_KEYS_ANNOTATION = "sandbox.tidegate.dev/open-keys"
"""On a Secret that stands for one whose keys nobody here can know: it has every key."""
SIMULATED_ANNOTATION = "sandbox.tidegate.dev/simulated"
"""On what a simulated operator has made."""
SIMULATED_VALUE = "simulated"
"""The value of a key of such a Secret, where nobody here can know the real one."""
FindObject = Callable[[Kind, str], JsonObject | None]
"""A Secret or a ConfigMap by its kind and name, where it is known."""


def has_open_keys(body: JsonObject) -> bool:
    return get_mapping(body, "metadata", "annotations").get(OPEN_KEYS_ANNOTATION) == "true"


def is_simulated(body: JsonObject) -> bool:
    return get_mapping(body, "metadata", "annotations").get(SIMULATED_ANNOTATION) == "true"


def get_data(body: JsonObject, *, binary: bool = True) -> dict[str, Json]:
    keys = {**get_mapping(body, "data"), **get_mapping(body, "stringData")}
    return {**get_mapping(body, "binaryData"), **keys} if binary else keys


def get_data_value(body: JsonObject | None, kind: Kind, key: str) -> str:
    """A value to look for hosts in. It is compared and never shown."""
    if body is None:
        return ""
    written = get_value(body, "stringData", key) or get_value(body, "data", key)
    if not isinstance(written, str):
        return ""
    if kind == CONFIG_MAP or get_value(body, "stringData", key):
        return written
    try:
        return base64.b64decode(written).decode(errors="replace")
    except binascii.Error:
        return ""


def list_variables(container: Json, find: FindObject) -> Iterator[tuple[str, str]]:
    """The variables of a container with their values, as far as they are known."""
    for kind, reference in list_env_from_sources(container):
        found = find(kind, get_text(reference, "name"))
        for key in get_data(found) if found is not None else ():
            yield key, get_data_value(found, kind, key)
    for name, kind, reference in list_env_key_sources(container):
        found = find(kind, get_text(reference, "name"))
        yield name, get_data_value(found, kind, get_text(reference, "key"))
    for variable in get_mappings(container, "env"):
        if value := get_text(variable, "value"):
            yield get_text(variable, "name"), value
