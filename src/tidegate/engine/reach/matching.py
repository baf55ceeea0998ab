"""Which objects a webhook is asked about, by its rules and its selectors.

Reads a webhook as it stands in its configuration. What only the server can evaluate, such as match
conditions, is not looked at here.
"""

from __future__ import annotations

from tidegate.engine.means import Body
from tidegate.model.objects import Json, Served
from tidegate.model.reading import listed, mapping, mappings, text

EVERY = "*"
NAMESPACES = ("", "namespaces")
ADMISSION = "admissionregistration.k8s.io"
"""The server never asks webhooks about kinds of this group."""


def is_asked(hook: Body, served: Served, operation: str) -> bool:
    """Whether a rule of the webhook covers an operation on objects of a kind."""
    if served.kind.group == ADMISSION:
        return False
    return any(_covers(rule, served, operation) for rule in mappings(hook, "rules"))


def _covers(rule: Body, served: Served, operation: str) -> bool:
    claims = (
        ("operations", operation),
        ("apiGroups", served.kind.group),
        ("apiVersions", served.kind.version),
    )
    is_meant = all(_names(listed(rule, field), value) for field, value in claims)
    return is_meant and _covers_scope(rule, served) and _covers_resource(rule, served.plural)


def _names(values: list[Json], value: str) -> bool:
    return EVERY in values or value in values


def _covers_scope(rule: Body, served: Served) -> bool:
    scope = text(rule, "scope", default=EVERY)
    return scope in (EVERY, "Namespaced" if served.namespaced else "Cluster")


def _covers_resource(rule: Body, plural: str) -> bool:
    """`pods` and `pods/*` mean the object itself; `pods/exec` means something else."""
    wanted = (str(one).partition("/") for one in listed(rule, "resources"))
    return any(name in (EVERY, plural) and below in ("", EVERY) for name, _, below in wanted)


def labels_of(body: Body) -> Body:
    return mapping(body, "metadata", "labels")
