"""What was absent from a simulated cluster: as the scenario that was taken for it, or as a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from tidegate.model.absence import NEVER_GIVEN, Absence, Lacking
from tidegate.model.given import GivenCluster, GivenKind, GivenOperator, title_of
from tidegate.model.objects import Ref
from tidegate.report.rollout.names import fold, listing

MOST_NAMED = 3
HEAD = "assumed, since nothing here brings it; these lines are a scenario:"
TITLES = {
    Lacking.OPERATOR: "operators",
    Lacking.KIND: "kinds that nobody defines",
    Lacking.NAMESPACE: "namespaces",
    Lacking.OBJECT: "objects of the platform",
    Lacking.SETTING: "Secrets, ConfigMaps, accounts and claims",
    Lacking.SERVICE: "Services",
    Lacking.PART: "parts of what is there",
    Lacking.ROOT: "trust roots, which somebody brings by hand",
}


class AssumedCluster(
    msgspec.Struct, frozen=True, omit_defaults=True, tag_field="event", tag="cluster.assumed"
):
    """What was taken as given, for programs: as a scenario has it."""

    given: GivenCluster


class AbsentThing(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
    tag_field="event",
    tag="cluster.lacks",
    rename="camel",
):
    """One thing that nobody brings, for programs."""

    lacking: Lacking
    name: str
    cluster: str = ""
    kinds: tuple[str, ...] = ()
    needed_by: tuple[str, ...] = ()


def assumed_lines(absences: Sequence[Absence], given: GivenCluster) -> Iterator[str]:
    """A scenario, with a line for each group, and beside it who needs that."""
    if given == GivenCluster():
        return
    yield HEAD
    yield "given:"
    sorts: list[tuple[str, list[str], list[Absence]]] = [
        ("operators", [*map(_operator, given.operators)], _of(absences, _is_operator)),
        ("kinds", [*map(_kind, given.kinds)], _of(absences, _is_kind)),
        ("namespaces", [*given.namespaces], []),
    ]
    for title, names, about in sorts:
        if names:
            yield f"  {title}: [{', '.join(names)}]{_because(about)}"
    if given.names:
        yield "  names:"
    for title, names_ in given.names.items():
        about = [one for one in absences if _is_object(one, title)]
        yield f"    {title}: [{', '.join(names_)}]{_because(about)}"


def absent_lines(absences: Sequence[Absence]) -> Iterator[str]:
    """Everything that is missing, by groups, each once, with who needs it."""
    several = len({one.cluster for one in absences}) > 1
    for sort, title in TITLES.items():
        found = [one for one in absences if one.lacking is sort]
        if found:
            yield f"missing: {title}"
            names = [_name(one, several=several) for one in found]
            width = max(map(len, names))
            for name, one in zip(names, found, strict=True):
                yield f"  {name:{width}}  for {listing(one.needed_by, MOST_NAMED)}"


def absence_documents(
    absences: Sequence[Absence], given: Mapping[str, GivenCluster]
) -> Iterator[AssumedCluster | AbsentThing]:
    """The same for programs. Where nothing is given, nothing was assumed."""
    for one in absences:
        if one.lacking in NEVER_GIVEN or not given:
            has_kinds = one.lacking is Lacking.OPERATOR
            yield AbsentThing(
                lacking=one.lacking,
                name=one.ref.name if has_kinds and one.ref.name else _titled(one),
                cluster=one.cluster,
                kinds=tuple(map(str, one.kinds)) if has_kinds else (),
                needed_by=tuple(map(str, one.needed_by)),
            )
    if given:
        yield AssumedCluster(all_given(given))


def all_given(given: Mapping[str, GivenCluster]) -> GivenCluster:
    """What was given to any of the clusters: a scenario gives to all."""
    whole = GivenCluster()
    for one in given.values():
        whole = whole.and_more(one)
    return whole


def _of(absences: Iterable[Absence], fits: Callable[[Absence], bool]) -> list[Absence]:
    return [one for one in absences if fits(one)]


def _is_operator(one: Absence) -> bool:
    return one.lacking is Lacking.OPERATOR and bool(one.ref.name)


def _is_kind(one: Absence) -> bool:
    is_servant = one.lacking is Lacking.OPERATOR and not one.ref.name
    return one.lacking is Lacking.KIND or is_servant


def _is_object(one: Absence, title: str) -> bool:
    kind = one.ref.kind
    return one.lacking is Lacking.OBJECT and title_of(kind.group, kind.name) == title


def _because(absences: Sequence[Absence]) -> str:
    """Who needs this, and what comes of it."""
    refs = dict.fromkeys(ref for one in absences for ref in one.needed_by)
    if not refs:
        return ""
    makes = dict.fromkeys(ref for one in absences for ref in one.makes)
    made = f" (makes {listing(makes, MOST_NAMED)})" if makes else ""
    strange = dict.fromkeys(one.ref.kind.name for one in absences if one.strange and not one.served)
    told = fold(strange, len(strange), MOST_NAMED)
    guessed = f"; nobody knows {told}: taken to be well after a moment" if strange else ""
    return f"  # for {listing(refs, MOST_NAMED)}{made}{guessed}"


def _operator(one: GivenOperator) -> str:
    return one.name if one == GivenOperator(one.name) else _flow(one)


def _kind(one: GivenKind) -> str:
    return one.name if one == GivenKind(one.name) else _flow(one)


def _flow(one: GivenOperator | GivenKind) -> str:
    """A mapping in one line, without what goes without saying."""
    plain = type(one)(one.name)
    fields = [
        (name, getattr(one, name))
        for name in one.__struct_fields__
        if getattr(one, name) != getattr(plain, name)
    ]
    said = (f"{name}: {str(value).lower()}" for name, value in fields)
    return f"{{{', '.join((f'name: {one.name}', *said))}}}"


def _name(one: Absence, *, several: bool) -> str:
    told = _titled(one)
    return f"{one.cluster}: {told}" if several and one.cluster else told


def called(one: Absence) -> str:
    """What it is, with its kind: `operator cert-manager (Issuer)`, `Namespace shop`."""
    match one.lacking:
        case Lacking.OPERATOR if one.ref.name:
            return f"operator {_titled(one)}"
        case Lacking.KIND:
            return f"kind {_titled(one)}"
        case Lacking.NAMESPACE:
            return f"Namespace {one.ref.name}"
        case _:
            return _titled(one)


def _titled(one: Absence) -> str:
    ref = one.ref
    match one.lacking:
        case Lacking.OPERATOR if ref.name:
            kinds = dict.fromkeys(kind.name for kind in one.kinds)
            return f"{ref.name} ({fold(kinds, len(kinds), MOST_NAMED)})"
        case Lacking.OPERATOR:
            return f"whoever serves {title_of(ref.kind.group, ref.kind.name)}"
        case Lacking.KIND:
            return f"{ref.kind.api_version}/{ref.kind.name}"
        case Lacking.NAMESPACE:
            return ref.name
        case Lacking.PART:
            return one.part
        case Lacking.OBJECT | Lacking.SETTING | Lacking.SERVICE | Lacking.ROOT:
            return str(Ref(ref.kind, ref.namespace, ref.name))
