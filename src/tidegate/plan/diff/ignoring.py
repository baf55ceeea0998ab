"""Differences that somebody wants to be ignored: what is compared without them, what is written.

An ignored field counts on neither side, nor does who owns it. Each path is looked for on both sides
by itself; where it does not lead anywhere it ignores nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias, cast

from tidegate.model.ignoring import FindPaths, Ignored, Path
from tidegate.model.objects import Json
from tidegate.model.reading import mapping, text
from tidegate.plan.diff.cutting import Cuts, cut, cut_owned, owned_paths
from tidegate.plan.diff.grafting import graft
from tidegate.plan.diff.owned import Body, Fields, entries_of, fields_in, unite

Rules: TypeAlias = tuple[Ignored, ...]
STATUS = "status"


def set_aside(wanted: Body, live: Body, rules: Rules, find_paths: FindPaths) -> tuple[Body, Body]:
    """Both objects without what is ignored."""
    said, there = map(Cuts.at, _ignored(wanted, live, rules, find_paths))
    left = _with_owners(_cut(live, there), live, there)
    return _cut(wanted, said, tidy=True), left


def keep_living(wanted: Body, live: Body, rules: Rules, find_paths: FindPaths) -> Body:
    """The wanted object with what lives in the place of what is ignored, but for its status."""
    said, there = _ignored(wanted, live, rules, find_paths)
    body = _cut(wanted, Cuts.at(said))
    for path in sorted(set(there), key=str):
        if path[0] != STATUS:
            body = cast("Body", graft(body, live, path))
    return body


def _cut(body: Body, cuts: Cuts, *, tidy: bool = False) -> Body:
    return cast("Body", cut(body, cuts, tidy=tidy)) if cuts.below else body


def _ignored(wanted: Body, live: Body, rules: Rules, find_paths: FindPaths) -> list[list[Path]]:
    """The places in both that are ignored; none is the body itself."""
    expressions = tuple(dict.fromkeys(one for rule in rules for one in rule.expressions))
    named = find_paths(expressions, (wanted, live)) if expressions else ((), ())
    pointers = [pointer for rule in rules for pointer in rule.pointers]
    trusted = _trusted(live, rules)
    return [
        list(filter(None, (*found, *_pointed_at(pointers, body), *owned_paths(trusted, body))))
        for body, found in zip((wanted, live), named, strict=True)
    ]


def _trusted(live: Body, rules: Rules) -> Fields:
    """What is owned by managers whose fields are ignored."""
    names = {name for rule in rules for name in rule.managers}
    fields: Fields = {}
    for entry in entries_of(live) if names else ():
        if text(entry, "manager") in names:
            fields = unite(fields, fields_in(entry))
    return fields


def _pointed_at(pointers: Iterable[str], body: Body) -> Iterator[Path]:
    for pointer in pointers:
        path: list[str | int] = []
        value: Json = body
        for part in pointer.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and name in value:
                value = value[name]
                path.append(name)
            elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
                value = value[int(name)]
                path.append(int(name))
            else:
                break
        else:
            yield tuple(path)


def _with_owners(left: Body, live: Body, cuts: Cuts) -> Body:
    """What is left of a live object, with those who own something of that."""
    if left is live:
        return live
    entries = ((entry, cut_owned(fields_in(entry), live, cuts)) for entry in entries_of(live))
    kept: list[Json] = [
        {**entry, "fieldsV1": cast("Json", fields)} for entry, fields in entries if fields
    ]
    return {**left, "metadata": {**mapping(left, "metadata"), "managedFields": kept}}
