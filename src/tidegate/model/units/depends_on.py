"""The annotation `tidegate.dev/depends-on`: objects that an object or a unit depends on.

    tidegate.dev/depends-on: Application/argocd/base, Secret/shop/db@present, Job/shop/old@absent

An entry consists of kind, namespace and name. The kind may have a group, a version, or both:
`apps/Deployment/shop/web`, `v1/Namespace/shop`, `apps/v1/Deployment/shop/web`. Without a namespace,
it is the namespace of the annotated object, or none. The part after `@` is the required state:
`ready` (the default), `present` or `absent`.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from tidegate.model.text.lazy_regex import lazy_regex

DEPENDS_ON = "tidegate.dev/depends-on"
_VERSION = r"v[0-9]+(?:[a-z]+[0-9]+)?"
_ENTRY = lazy_regex(
    rf"(?:(?P<group>(?!{_VERSION}/)[a-z0-9.-]+)/)?(?:(?P<version>{_VERSION})/)?(?P<kind>[A-Z]\w*)/"
    r"(?:(?P<namespace>[a-z0-9-]+)/)?(?P<name>[a-z0-9.:-]+)(?:@(?P<state>present|ready|absent))?"
)


class AwaitedState(StrEnum):
    """The required state of a dependency."""

    READY = "ready"
    PRESENT = "present"
    ABSENT = "absent"


class DependsOnEntry(NamedTuple):
    """One entry of the annotation."""

    group: str | None
    """The API group. None if neither a group nor a version is given: then any group matches."""
    version: str
    kind: str
    namespace: str
    name: str
    state: AwaitedState


def parse_depends_on(value: object) -> Iterator[DependsOnEntry | str]:
    """Yield the entries of an annotation. An entry that cannot be parsed is returned as text."""
    entries = value.split(",") if isinstance(value, str) else []
    for entry in (entry_text.strip() for entry_text in entries):
        if entry:
            yield _parse_entry(entry)


def _parse_entry(entry: str) -> DependsOnEntry | str:
    match = _ENTRY.fullmatch(entry)
    if match is None:
        return entry
    version, group = match["version"] or "", match["group"]
    return DependsOnEntry(
        group if group is not None or not version else "",
        version,
        match["kind"],
        match["namespace"] or "",
        match["name"],
        AwaitedState(match["state"] or AwaitedState.READY),
    )
