"""What an installation of Argo CD says of all its Applications, in `argocd-cm`.

Differences that it ignores, kinds that it leaves alone, the pause between waves, and the label by
which it knows its objects. Health rules are read where health is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

import msgspec

from tidegate.dialect.argo.ignoring import take_ignored
from tidegate.dialect.argo.requests import Body, texts
from tidegate.documents import read_value
from tidegate.errors import DocumentError, Place, foreign
from tidegate.globs import compile_glob
from tidegate.model.config import Switch
from tidegate.model.finding import Finding, Severity
from tidegate.model.ignoring import Ignored
from tidegate.model.moment import SECOND, Ms, parse_duration
from tidegate.model.objects import Json
from tidegate.model.policy import Policy
from tidegate.model.reading import mapping, mappings
from tidegate.model.semantics import ChildGates

OLD = "resource.customizations"
IGNORES = "ignoreDifferences"
EVERYTHING = "*/*"
DELAY, METHOD = "controller.sync.wave.delay.seconds", "application.resourceTrackingMethod"
LOOKS_EVERY, LOOKS_LATER = "timeout.reconciliation", "timeout.reconciliation.jitter"
HEALS_EVERY = "controller.self.heal.timeout.seconds"
HEALS_AFTER = "controller.self.heal.backoff.timeout.seconds"
HEALS_SLOWER = "controller.self.heal.backoff.factor"
HEALS_WITHIN = "controller.self.heal.backoff.cap.seconds"
LABEL_KEY, DEFAULT_LABEL = "application.instanceLabelKey", "app.kubernetes.io/instance"
LABEL = "label"
WITH_LABEL = frozenset({LABEL, "annotation+label"})
EXCLUSIONS, INCLUSIONS = "resource.exclusions", "resource.inclusions"


class KindFilter(msgspec.Struct, frozen=True):
    """Kinds of some clusters; a list that is empty is all of them."""

    groups: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()

    def fits(self, group: str, kind: str, server: str) -> bool:
        return (
            (not self.groups or any(_fits(one, group) for one in self.groups))
            and (not self.kinds or bool({"*", kind} & {*self.kinds}))
            and self.is_for(server)
        )

    def is_for(self, server: str) -> bool:
        return not self.clusters or any(_fits(one, server) for one in self.clusters)


ALWAYS = (
    KindFilter(groups=("events.k8s.io", "metrics.k8s.io")),
    KindFilter(groups=("",), kinds=("Event",)),
    KindFilter(groups=("coordination.k8s.io",), kinds=("Lease",)),
)
"""What every Argo CD leaves alone."""


class KindFilters(msgspec.Struct, frozen=True):
    """The kinds that Argo CD leaves alone, and those that alone it looks at."""

    excluded: tuple[KindFilter, ...] = ALWAYS
    included: tuple[KindFilter, ...] = ()
    where: Place | None = None

    def leave_out(self, group: str, kind: str, server: str) -> bool:
        if any(one.fits(group, kind, server) for one in self.excluded):
            return True
        if any(one.fits(group, kind, server) for one in self.included):
            return False
        return any(one.is_for(server) for one in self.included)


class Customs(msgspec.Struct, frozen=True, kw_only=True):
    """All of it, and what is wrong with it."""

    ignores: tuple[Ignored, ...] = ()
    filters: KindFilters = KindFilters()
    paces: Mapping[str, int] = {}
    """Values of the semantics that the controller is told otherwise."""
    label: str = ""
    labels_only: bool = False
    findings: tuple[Finding, ...] = ()


def read_customs(settings: Mapping[str, Switch]) -> Customs:
    findings: list[Finding] = []
    ignores = [one for said in settings.values() for one in _ignores(said, findings)]
    said = settings.get(METHOD)
    method = str(said.value) if said is not None else ""
    key = settings.get(LABEL_KEY)
    label = str(key.value) if key and key.value else DEFAULT_LABEL
    given = settings.get(EXCLUSIONS) or settings.get(INCLUSIONS)
    filters = KindFilters(
        excluded=(*ALWAYS, *_filters(settings.get(EXCLUSIONS), findings)),
        included=tuple(_filters(settings.get(INCLUSIONS), findings)),
        where=given.where if given else None,
    )
    return Customs(
        ignores=tuple(ignores),
        filters=filters,
        paces=_paces(settings),
        label=label if method in WITH_LABEL else "",
        labels_only=method == LABEL,
        findings=tuple(findings),
    )


def with_customs(
    policy: Policy, customs: Customs, *, gates_children: bool, is_child: bool
) -> Policy:
    """The policy of an Application in such an installation.

    `gates_children`: there is a health rule for Applications, so that a parent waits until its
    children are well, whatever their last wave is.
    """
    rules, switch = policy.semantics, msgspec.structs.replace
    rules = switch(rules, **customs.paces)
    if gates_children:
        rules = switch(rules, children=ChildGates.ALWAYS)
        rules = switch(rules, gates_last=True) if is_child else rules
    return switch(
        policy,
        semantics=rules,
        ignores=(*policy.ignores, *customs.ignores),
        instance_label=customs.label,
        labels_only=customs.labels_only,
    )


def _paces(settings: Mapping[str, Switch]) -> dict[str, int]:
    """The pause between waves, those before what others changed is put back, and how often
    Applications look for newer revisions.

    Where the first pause before something is put back is 0, the same comes before every attempt.
    """
    named = {"pause": DELAY, "heal_first": HEALS_AFTER, "heal_cap": HEALS_WITHIN}
    found = {name: _seconds(settings.get(key)) for name, key in named.items()}
    said = {name: int(value) for name, value in found.items() if value is not None}
    looks = {"refresh_every": LOOKS_EVERY, "refresh_jitter": LOOKS_LATER}
    for name, key in looks.items():
        if (span := _span(settings.get(key))) is not None:
            said[name] = int(span)
    factor = settings.get(HEALS_SLOWER)
    if factor is not None and str(factor.value).isdecimal():
        said["heal_factor"] = int(str(factor.value))
    if said.get("heal_first") == 0:
        every = int(_seconds(settings.get(HEALS_EVERY)) or 0)
        said |= {"heal_start": every, "heal_first": every, "heal_cap": every, "heal_factor": 1}
    return said


def _ignores(said: Switch, findings: list[Finding]) -> Iterator[Ignored]:
    """The differences of one key, in the new form or in the old one."""
    if said.name == OLD:
        for key, entry in mapping(_yaml(said, findings)).items():
            inside = mapping(entry).get(IGNORES)
            if isinstance(inside, str):
                yield from _entry(key, inside, said, findings)
    elif said.name.startswith(f"{OLD}.{IGNORES}."):
        names = said.name.removeprefix(f"{OLD}.{IGNORES}.").split("_")
        key = EVERYTHING if names == ["all"] else "/".join(names)
        yield from _entry(key, str(said.value), said, findings)


def _entry(key: str, value: str, said: Switch, findings: list[Finding]) -> Iterator[Ignored]:
    group, sign, kind = key.rpartition("/")
    body: Body = mapping(_yaml(Switch(said.name, value, said.where), findings))
    taken, flaws = take_ignored([{**body, "group": group if sign else "", "kind": kind}])
    for _, flaw in flaws:
        findings.append(_wrong(said, flaw.problem, flaw.hint))
    yield from taken


def _filters(said: Switch | None, findings: list[Finding]) -> Iterator[KindFilter]:
    if said is None:
        return
    for one in mappings({"all": _yaml(said, findings)}, "all"):
        yield KindFilter(
            groups=texts(one, "apiGroups"),
            kinds=texts(one, "kinds"),
            clusters=texts(one, "clusters"),
        )


def _yaml(said: Switch, findings: list[Finding]) -> Json:
    try:
        return read_value(str(said.value), said.where.name)
    except DocumentError as error:
        findings.append(_wrong(said, f"it is no YAML: {error.problem}", ""))
        return None


def _wrong(said: Switch, problem: str, hint: str) -> Finding:
    return Finding(
        code="argo.setting",
        severity=Severity.WARNING,
        sentence=f"`{foreign(said.name)}` does nothing: {problem}",
        where=said.where,
        why="Argo CD would log an error",
        fix=hint,
    )


def _seconds(said: Switch | None) -> Ms | None:
    """A pause in whole seconds; what is no number is the default."""
    text = str(said.value) if said is not None else ""
    return Ms(int(text) * SECOND) if text.isascii() and text.isdigit() else None


def _span(said: Switch | None) -> Ms | None:
    """A duration as Go writes it, or whole seconds; what is none is the default."""
    seconds = _seconds(said)
    if said is None or seconds is not None:
        return seconds
    try:
        return parse_duration(str(said.value))
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def _fits(pattern: str, value: str) -> bool:
    try:
        return compile_glob(pattern).fullmatch(value) is not None
    except ValueError:
        return False
