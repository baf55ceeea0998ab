"""Validation of names, labels and keys, with the messages of the server."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tidegate.model.k8s.objects import Json, Kind
from tidegate.schema.builtin import find_shape
from tidegate.schema.causes import invalid, required
from tidegate.world.messages import Cause

LABEL_LIMIT, SUBDOMAIN_LIMIT, CRON_JOB_LIMIT = 63, 253, 52
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_PART = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_KEY = "[-._a-zA-Z0-9]+"
_IS_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    f"for validation is '{_LABEL}')"
)
_IS_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    f"for validation is '{_SUBDOMAIN}')"
)
_IS_PART = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    f"validation is '{_PART}')"
)
_IS_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    f"or '12345', regex used for validation is '({_PART})?')"
)
_IS_KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
    f"'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '{_KEY}')"
)
_IS_QUALIFIED = (
    f"a valid label key {_IS_PART} with an optional DNS subdomain prefix and '/' "
    "(e.g. 'example.com/MyName')"
)
_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_label_part = re.compile(_PART).fullmatch
_is_config_key = re.compile(_KEY).fullmatch
_DNS_LABEL_KINDS = {("", "Namespace"), ("", "Service"), ("apps", "StatefulSet")}
_RBAC_GROUP = "rbac.authorization.k8s.io"
_LENIENT_GROUPS = {"apiextensions.k8s.io", "apiregistration.k8s.io"}
_STANDARD_FINALIZERS = {"orphan", "foregroundDeletion", "kubernetes"}


def find_name_problems(kind: Kind, metadata: dict[str, Json]) -> Iterator[Cause]:
    """Yield the problems of the name, labels, annotations and finalizers of an object.

    Like `ValidateObjectMeta` in `pkg/api/validation/objectmeta.go` of k8s.io/apimachinery 0.36.4.
    """
    yield from _object_name_problems(kind, metadata)
    yield from label_problems("metadata.labels", metadata.get("labels"))
    annotations = metadata.get("annotations")
    for key in annotations if isinstance(annotations, dict) else ():
        yield from _qualified_problems(key, "metadata.annotations", key.lower())
    finalizers = metadata.get("finalizers") if _needs_qualified_finalizers(kind) else None
    for index, name in enumerate(finalizers if isinstance(finalizers, list) else ()):
        text = str(name)
        if "/" not in text and text not in _STANDARD_FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid(f"metadata.finalizers[{index}]", text, detail)


def _needs_qualified_finalizers(kind: Kind) -> bool:
    """Return whether finalizers need a slash. Those of CRDs and custom kinds do not."""
    return kind.group not in _LENIENT_GROUPS and find_shape(kind) is not None


def label_problems(field: str, labels: Json) -> Iterator[Cause]:
    """Yield the problems of labels, or of a selector written like labels.

    Like `ValidateLabels` in `pkg/apis/meta/v1/validation/validation.go` of k8s.io/apimachinery
    0.36.4.
    """
    for key, value in labels.items() if isinstance(labels, dict) else ():
        yield from _qualified_problems(key, field, key)
        text = str(value)
        if len(text.encode()) > LABEL_LIMIT:
            yield invalid(field, text, f"must be no more than {LABEL_LIMIT} bytes")
        elif text and not _is_label_part(text):
            yield invalid(field, text, _IS_VALUE)


def key_problems(data: Json, field: str) -> Iterator[Cause]:
    """Yield the problems of the keys of a ConfigMap or Secret.

    Like `IsConfigMapKey` in `pkg/util/validation/validation.go` of k8s.io/apimachinery 0.36.4.
    """
    for key in data if isinstance(data, dict) else ():
        if not _is_config_key(key):
            yield invalid(f"{field}[{key}]", key, _IS_KEY)


def dns_label(field: str, value: Json) -> Iterator[Cause]:
    """Yield the problems of a value that must be a DNS label, if it is set.

    Like `IsDNS1123Label` in `pkg/util/validation/validation.go` of k8s.io/apimachinery 0.36.4.
    """
    if not isinstance(value, str) or not value:
        return
    if len(value) > LABEL_LIMIT:
        yield invalid(field, value, f"must be no more than {LABEL_LIMIT} characters")
    if "." in value and _is_subdomain(value):
        yield invalid(field, value, "must not contain dots")
    elif not _is_label(value):
        yield invalid(field, value, _IS_LABEL)


def dns_subdomain(field: str, value: Json) -> Iterator[Cause]:
    """Yield the problems of a value that must be a DNS subdomain, if it is set.

    Like `IsDNS1123Subdomain` in `pkg/util/validation/validation.go` of k8s.io/apimachinery 0.36.4.
    """
    if not isinstance(value, str) or not value:
        return
    if len(value) > SUBDOMAIN_LIMIT:
        yield invalid(field, value, f"must be no more than {SUBDOMAIN_LIMIT} characters")
    if not _is_subdomain(value):
        yield invalid(field, value, _IS_SUBDOMAIN)


def _object_name_problems(kind: Kind, metadata: dict[str, Json]) -> Iterator[Cause]:
    name, field = metadata.get("name"), "metadata.name"
    if not name:
        if not metadata.get("generateName"):
            yield required(field, "name or generateName is required")
    elif (kind.group, kind.name) in _DNS_LABEL_KINDS:
        yield from dns_label(field, name)
    elif kind.group != _RBAC_GROUP:
        yield from dns_subdomain(field, name)
    if kind.name == "CronJob" and len(str(name)) > CRON_JOB_LIMIT:
        yield invalid(field, name, f"must be no more than {CRON_JOB_LIMIT} characters")


def _qualified_problems(key: str, field: str, checked: str) -> Iterator[Cause]:
    """Yield the problems of a key with an optional prefix.

    Annotations are checked in lower case.

    Like `IsQualifiedName` in `pkg/util/validation/validation.go` of k8s.io/apimachinery 0.36.4.
    """
    prefix, slash, name = checked.rpartition("/")
    if "/" in prefix:
        yield invalid(field, key, _IS_QUALIFIED)
        return
    if slash and not prefix:
        yield invalid(field, key, "prefix part must be non-empty")
    elif prefix and not _is_subdomain(prefix):
        yield invalid(field, key, f"prefix part {_IS_SUBDOMAIN}")
    if not name:
        yield invalid(field, key, "name part must be non-empty")
    elif len(name) > LABEL_LIMIT:
        yield invalid(field, key, f"name part must be no more than {LABEL_LIMIT} bytes")
    if not _is_label_part(name):
        yield invalid(field, key, f"name part {_IS_PART}")
