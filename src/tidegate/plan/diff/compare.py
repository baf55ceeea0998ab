"""How a live object differs from the wanted one: what an apply would change, and nothing else.

What Git says is compared field by field with what lives; defaults and other managers' fields do not
count, and fields of ours that Git no longer says do. In doubt an object is changed: to apply what
is there already does no harm.
"""

from __future__ import annotations

from tidegate.model.change import MASK, Difference, Fate, FieldChange
from tidegate.model.reading import mapping
from tidegate.plan.diff.adoption import ADOPTED, adoptable, is_adopted, reported
from tidegate.plan.diff.facts import GROUPS
from tidegate.plan.diff.owned import Body, Fields, entries_of, fields_in, is_entry_of, unite
from tidegate.plan.diff.places import Parting, names_of, show_place
from tidegate.plan.diff.seal import digest_of, is_secret
from tidegate.plan.diff.seal import seal as seal_of
from tidegate.plan.diff.values import fold_text, is_hollow, show_pair, words
from tidegate.plan.diff.walk import Walk
from tidegate.schema.frozen import find_frozen

NEVER_OWNED = words(
    "clusterName creationTimestamp deletionGracePeriodSeconds deletionTimestamp generateName "
    "generation managedFields name namespace resourceVersion selfLink uid"
)
"""Parts of `metadata` that are not a manager's."""


def compare(
    wanted: Body,
    live: Body | None,
    *,
    manager: str,
    seal: str = "",
    digest: str = "",
    adopted: frozenset[str] = ADOPTED,
) -> Difference:
    """What becomes of a live object when the wanted one is applied by force.

    `digest` and `seal` are what was recorded after the last apply: while both still hold, nothing
    has to be compared. The fields of `adopted` managers count as ours.
    """
    if live is None:
        return Difference(deed=Fate.CREATE)
    entries = entries_of(live)
    taken = [entry for entry in entries if is_adopted(entry, manager, adopted)]
    is_recorded = bool(seal and digest) and not taken
    if is_recorded and digest == digest_of(wanted) and seal == seal_of(live, manager):
        return Difference(deed=Fate.KEEP)
    mine: Fields = {}
    others: list[Fields] = []
    for entry in entries:
        if is_entry_of(entry, manager):
            mine = unite(mine, fields_in(entry))
        elif entry in taken:
            mine = unite(mine, adoptable(entry))
            others.append(reported(entry))
        else:
            others.append(fields_in(entry))
    walk = walk_along(wanted, live, mine, others)
    if not (walk.found or walk.claims or taken):
        return Difference(deed=Fate.KEEP)
    return difference_of(walk, live, wanted, claims=walk.claims or bool(taken))


def walk_along(wanted: Body, live: Body, mine: Fields, others: list[Fields]) -> Walk:
    """What parts two objects; fields that are mine go where they are not wanted."""
    group, slash, _ = str(wanted.get("apiVersion", "")).rpartition("/")
    is_builtin = (group if slash else "") in GROUPS
    is_definition = wanted.get("kind") == "CustomResourceDefinition"
    if is_secret(wanted):
        wanted, mine = fold_text(wanted), _fold_fields(mine)
    said = {name: value for name, value in wanted.items() if name not in {"apiVersion", "kind"}}
    metadata = mapping(wanted, "metadata")
    said["metadata"] = {name: metadata[name] for name in metadata if name not in NEVER_OWNED}
    if not said["metadata"]:
        del said["metadata"]
    is_status_ours = "f:status" in mine or not (
        is_builtin or is_hollow(said.get("status")) or _has_own_status(live)
    )
    if not is_status_ours:
        said.pop("status", None)
    walk = Walk(others, is_builtin=is_builtin, is_definition=is_definition)
    walk.fields(said, live, mine)
    return walk


def _has_own_status(live: Body) -> bool:
    """Status is written apart, so an apply does not change it."""
    return any(entry.get("subresource") == "status" for entry in entries_of(live))


def _fold_fields(mine: Fields) -> Fields:
    texts = mine.get("f:stringData")
    if not texts:
        return mine
    rest = {name: inner for name, inner in mine.items() if name != "f:stringData"}
    return {**rest, "f:data": unite(mine.get("f:data", {}), texts)}


def difference_of(walk: Walk, live: Body, wanted: Body, *, claims: bool = False) -> Difference:
    """What such a walk has found, as people read it."""
    show = _show_masked if is_secret(live) else _show
    names = [names_of(found.place) for found in walk.found]
    frozen = frozenset(find_frozen(names, live, wanted))
    because = {
        show_place(found.place)
        for found, place in zip(walk.found, names, strict=True)
        if place in frozen
    }
    return Difference(
        deed=Fate.RECREATE if because else Fate.CHANGE,
        fields=tuple(sorted(map(show, walk.found))),
        because=tuple(sorted(because)),
        claims=claims,
    )


def _show(found: Parting) -> FieldChange:
    return FieldChange(show_place(found.place), *show_pair(found.before, found.after))


def _show_masked(found: Parting) -> FieldChange:
    before, after = (MASK if value is not None else "" for value in (found.before, found.after))
    return FieldChange(show_place(found.place), before, after)
