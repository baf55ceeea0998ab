"""API groups that are built in, and kinds that a CRD can define."""

from __future__ import annotations

from functools import cache

from tidegate.model.k8s.objects import Kind
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.schema.builtin import served_kinds

DNS_NAME = lazy_regex(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def can_be_custom(kind: Kind) -> bool:
    """Return whether a CRD can define the kind: its group is a domain and not built in.

    Like `ValidateCustomResourceDefinition` in `pkg/apis/apiextensions/validation/validation.go` of
    k8s.io/apiextensions-apiserver 0.36.4.
    """
    is_domain = "." in kind.group and kind.group not in builtin_groups()
    parts = (kind.group, kind.version or "v1", kind.name.lower())
    return is_domain and all(DNS_NAME.fullmatch(part) for part in parts)


@cache
def builtin_groups() -> frozenset[str]:
    """Return the API groups that every server has."""
    return frozenset(served.kind.group for served in served_kinds())
