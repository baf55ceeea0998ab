"""Which kinds can be somebody else's: not those that every server brings."""

from __future__ import annotations

from functools import cache

from tidegate.model.objects import Kind
from tidegate.model.patterns import late
from tidegate.schema.builtin import served_kinds

NAME = late(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def may_be_custom(kind: Kind) -> bool:
    """Whether a CRD can define it: its group is a domain, and none of Kubernetes' own."""
    is_domain = "." in kind.group and kind.group not in builtin_groups()
    parts = (kind.group, kind.version or "v1", kind.name.lower())
    return is_domain and all(NAME.fullmatch(one) for one in parts)


@cache
def builtin_groups() -> frozenset[str]:
    """The groups that every server brings."""
    return frozenset(one.kind.group for one in served_kinds())
