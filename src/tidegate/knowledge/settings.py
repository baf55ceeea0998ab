"""The data of Secrets and ConfigMaps, and the variables that containers get from them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tidegate.knowledge.references import list_env_from_sources, list_env_key_sources
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.kinds import CONFIG_MAP
from tidegate.model.k8s.objects import Json, JsonObject, Kind
from tidegate.model.text.lazy_regex import lazy_regex

OPEN_KEYS_ANNOTATION = "sandbox.tidegate.dev/open-keys"
"""Marks a Secret with unknown keys: every key is assumed to exist."""
SIMULATED_ANNOTATION = "sandbox.tidegate.dev/simulated"
"""Marks an object that a simulated operator has produced."""
SIMULATED_VALUE = "simulated"
"""The value of a key of such a Secret."""
DATABASE_VARIABLE = lazy_regex(
    r"(?:^|_)(?:DB|DSN|DATABASE|PG|SQL|MYSQL|MARIADB|POSTGRES(?:QL)?|MONGO(?:DB)?)(?:_|$|HOST|URL)",
    re.IGNORECASE,
)
DATABASE_URL = lazy_regex(
    r"^(?:jdbc:|(?:postgres(?:ql)?|mysql|mariadb|mongodb|sqlserver)[+\w]*://)"
)
SOPS_SECRET_KIND = "SopsSecret"  # noqa: S105 - it is a kind
"""A kind that an operator decrypts: that of addons.projectcapsule.dev or isindir.github.com."""
FindObject = Callable[[Kind, str], JsonObject | None]
"""A function that returns a Secret or ConfigMap by kind and name, or None if it is unknown."""


def has_open_keys(body: JsonObject) -> bool:
    """Return whether the keys of a Secret are unknown."""
    return get_mapping(body, "metadata", "annotations").get(OPEN_KEYS_ANNOTATION) == "true"


def is_simulated(body: JsonObject) -> bool:
    """Return whether a simulated operator has produced the object."""
    return get_mapping(body, "metadata", "annotations").get(SIMULATED_ANNOTATION) == "true"


def get_data(body: JsonObject, *, include_binary: bool = True) -> dict[str, Json]:
    """Return `data` and `stringData`, and `binaryData` unless it is excluded."""
    keys = {**get_mapping(body, "data"), **get_mapping(body, "stringData")}
    return {**get_mapping(body, "binaryData"), **keys} if include_binary else keys


def get_data_value(body: JsonObject | None, kind: Kind, key: str) -> str:
    """Return a decoded value, to search it for hosts.

    It is never displayed. Returns "" if missing.
    """
    if body is None:
        return ""
    value = get_value(body, "stringData", key) or get_value(body, "data", key)
    if not isinstance(value, str):
        return ""
    if kind == CONFIG_MAP or get_value(body, "stringData", key):
        return value
    try:
        return base64.b64decode(value).decode(errors="replace")
    except binascii.Error:
        return ""


class Variable(NamedTuple):
    """An environment variable of a container."""

    name: str
    value: str
    is_shared: bool = False
    """Whether it is one of all settings in an object of `envFrom`."""

    @property
    def is_used(self) -> bool:
        """Whether the container probably uses it: a list of settings also has those of others.

        The database is the exception: every task of a program that has one opens it.
        """
        is_of_database = DATABASE_VARIABLE.search(self.name) or DATABASE_URL.search(self.value)
        return not self.is_shared or is_of_database is not None


def list_variables(container: Json, find: FindObject) -> Iterator[Variable]:
    """Yield the variables of a container with their values, as far as they are known."""
    for kind, reference in list_env_from_sources(container):
        source = find(kind, get_text(reference, "name"))
        for key in get_data(source) if source is not None else ():
            yield Variable(key, get_data_value(source, kind, key), is_shared=True)
    for name, kind, reference in list_env_key_sources(container):
        source = find(kind, get_text(reference, "name"))
        yield Variable(name, get_data_value(source, kind, get_text(reference, "key")))
    for variable in get_mappings(container, "env"):
        if value := get_text(variable, "value"):
            yield Variable(get_text(variable, "name"), value)
