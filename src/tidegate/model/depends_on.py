"""Our own annotation: what an object, or a whole unit, comes after.

    tidegate.dev/depends-on: Application/argocd/base, Secret/shop/db@present, Job/shop/old@absent

An entry is a kind, a namespace and a name. Before the kind may stand its group, its version, or
both: `apps/Deployment/shop/web`, `v1/Namespace/shop`, `apps/v1/Deployment/shop/web`. Without a
namespace it is in that of who says so, or in none. Behind `@` stands what is asked of it: to be
ready, which is meant if nothing is said, to be there, or not to be there.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from tidegate.model.patterns import late

DEPENDS_ON = "tidegate.dev/depends-on"
_VERSION = r"v[0-9]+(?:[a-z]+[0-9]+)?"
_ENTRY = late(
    rf"(?:(?P<group>(?!{_VERSION}/)[a-z0-9.-]+)/)?(?:(?P<version>{_VERSION})/)?(?P<kind>[A-Z]\w*)/"
    r"(?:(?P<namespace>[a-z0-9-]+)/)?(?P<name>[a-z0-9.:-]+)(?:@(?P<state>present|ready|absent))?"
)


class AwaitedState(StrEnum):
    """What is asked of something before others begin."""

    READY = "ready"
    PRESENT = "present"
    ABSENT = "absent"


class DependsOn(NamedTuple):
    """One entry. `group` is None where neither it nor a version is said: then any that fits."""

    group: str | None
    version: str
    kind: str
    namespace: str
    name: str
    state: AwaitedState


def read_depends_on(said: object) -> Iterator[DependsOn | str]:
    """The entries of an annotation; one that nobody can read is given back as it stands."""
    words = said.split(",") if isinstance(said, str) else []
    for word in (one.strip() for one in words):
        if word:
            yield _read(word)


def _read(word: str) -> DependsOn | str:
    found = _ENTRY.fullmatch(word)
    if found is None:
        return word
    version, group = found["version"] or "", found["group"]
    return DependsOn(
        group if group is not None or not version else "",
        version,
        found["kind"],
        found["namespace"] or "",
        found["name"],
        AwaitedState(found["state"] or AwaitedState.READY),
    )
