"""What a set may do to Applications: update and delete them, and which of their fields it leaves.

Argo CD's controller may have a policy of its own. It counts, unless that lets sets say otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidegate.dialect.argo.ignoring import take_ignored
from tidegate.dialect.argo.sets.asking import Body
from tidegate.dialect.argo.telling import Telling
from tidegate.dialect.declared import DeclaredSet
from tidegate.documents.decoding import suggest
from tidegate.errors import foreign
from tidegate.model.ignoring import Ignored
from tidegate.model.objects import Json
from tidegate.model.reading import listed, mapping, text

POLICIES = ("create-only", "create-update", "create-delete", "sync")
UPDATES, DELETES = ("create-update", "sync"), ("create-delete", "sync")
POLICY = "applicationsetcontroller.policy"
OVERRIDE = "applicationsetcontroller.enable.policy.override"
FIELD = ("spec", "syncPolicy", "applicationsSync")
PRESERVED, IGNORED = ("spec", "preservedFields"), ("spec", "ignoreApplicationDifferences")
WRITTEN = ("/spec", "/metadata/labels", "/metadata/annotations", "/metadata/finalizers")
"""What a set writes of an Application."""
GROUP, KIND = "argoproj.io", "Application"


class SetPolicy(msgspec.Struct, frozen=True):
    """Whether Applications that are there are updated, and those no longer generated deleted."""

    updates: bool = True
    deletes: bool = True


def policy_of(one: DeclaredSet, settings: Mapping[str, str]) -> SetPolicy:
    """By what the set says, and what its controller is told."""
    own, theirs = text(one.body, *FIELD), settings.get(POLICY, "")
    may_say = settings.get(OVERRIDE, "true" if not theirs else "false") == "true"
    said = own if may_say and own in POLICIES else theirs
    return SetPolicy(said in UPDATES, said in DELETES) if said in POLICIES else SetPolicy()


def tell_policy(one: DeclaredSet, settings: Mapping[str, str], telling: Telling) -> None:
    """What keeps Applications from following their set."""
    own, policy = text(one.body, *FIELD), policy_of(one, settings)
    if own and own not in POLICIES:
        said = f"there is no policy `{foreign(own)}`"
        why = "the API server refuses the set"
        telling.error("argo.set-policy", FIELD, said, why, suggest(own, POLICIES))
        return
    if own and policy != policy_of(one, {}):
        said = f"`{own}` does not count: the controller's policy is `{settings.get(POLICY)}`"
        fix = f"set `{OVERRIDE}: true` for the controller"
        telling.warn("argo.set-policy", FIELD, said, "it lets no set say otherwise", fix)
    if not policy.updates:
        said = "Applications that are there already do not follow this set"
        telling.note("argo.set-policy", FIELD, said, "its policy creates and does not update")
    if not policy.deletes:
        said = "Applications that are no longer generated stay"
        telling.note("argo.set-policy", FIELD, said, "its policy does not delete")


def left_alone(one: DeclaredSet, policy: SetPolicy) -> tuple[Ignored, ...]:
    """The fields of Applications that stay as they live: all, where they are not updated."""
    whole = () if policy.updates else (Ignored(group=GROUP, kind=KIND, pointers=WRITTEN),)
    return (*whole, *take_ignored(_entries(one))[0])


def _entries(one: DeclaredSet) -> list[Json]:
    written = listed(one.body, *IGNORED)
    return [{**mapping(entry), "group": GROUP, "kind": KIND} for entry in written]


def tell_left_alone(one: DeclaredSet, telling: Telling) -> None:
    """Entries that name no field, or no pointer."""
    for inside, flaw in take_ignored(_entries(one))[1]:
        why = "nothing is ignored by it"
        telling.warn("argo.ignored", (*IGNORED, *inside), flaw.problem, why, flaw.hint)


def is_strict(one: DeclaredSet, settings: Mapping[str, str]) -> bool:
    """Whether Applications come to be as they are generated, whatever lives."""
    keeps = mapping(one.body, *PRESERVED) or listed(one.body, *IGNORED)
    return policy_of(one, settings).updates and not keeps


def with_preserved(generated: Body, live: Body, one: DeclaredSet) -> Body:
    """An Application with the annotations and labels that its set does not touch as they live."""
    metadata = mapping(generated, "metadata")
    for kind in ("annotations", "labels"):
        lives = mapping(live, "metadata", kind)
        kept = {
            key: lives[key] for key in map(str, listed(one.body, *PRESERVED, kind)) if key in lives
        }
        if kept:
            metadata = {**metadata, kind: {**mapping(metadata, kind), **kept}}
    return {**generated, "metadata": metadata}
