"""AppProjects: what Applications may take, where they may go, when; each rule with its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from tidegate.dialect.argo.requests import Body, is_set, texts
from tidegate.dialect.argo.telling import Telling
from tidegate.documents import Document, FieldPath
from tidegate.errors import Place, foreign
from tidegate.model.finding import Finding
from tidegate.model.moment import Ms, parse_duration
from tidegate.model.project import (
    AccountRule,
    DestinationRule,
    KindRule,
    NameRule,
    OrphanRules,
    Project,
    WindowRule,
)
from tidegate.model.reading import listed, mapping, part, text
from tidegate.model.schedule import ScheduleError, parse_schedule, read_zone
from tidegate.model.sync_window import SyncWindow

KIND = "AppProject"
LISTS = (
    "sourceRepos",
    "sourceNamespaces",
    "destinations",
    "clusterResourceWhitelist",
    "clusterResourceBlacklist",
    "namespaceResourceWhitelist",
    "namespaceResourceBlacklist",
    "destinationServiceAccounts",
    "syncWindows",
    "orphanedResources",
)
UNPLAYED = ("signatureKeys", "sourceIntegrity")
LONGEST = 255
"""Signs of a description."""
PlaceOf = Callable[[FieldPath], Place]


def project_paths(document: Document) -> Iterator[FieldPath]:
    """The paths of an AppProject whose places its rules have."""
    for field in (*LISTS, *UNPLAYED):
        if part(document.body, "spec", field) is not None:
            yield ("spec", field)
        for place, _ in enumerate(listed(document.body, "spec", field)):
            yield ("spec", field, place)


def read_project(
    document: Document, home: str, place_of: PlaceOf
) -> tuple[Project, tuple[Finding, ...]]:
    """The project, and what is wrong with it; one that names no namespace is in `home`.

    An empty `home` is not known.
    """
    reading = _ProjectText(document, place_of)
    spec, body = mapping(document.body, "spec"), document.body
    labels = mapping(body, "metadata", "labels")
    project = Project(
        name=text(body, "metadata", "name"),
        home=text(body, "metadata", "namespace", default=home),
        where=spot(document.place),
        labels=tuple((key, one) for key, one in labels.items() if isinstance(one, str)),
        repositories=reading.names("sourceRepos"),
        namespaces=reading.names("sourceNamespaces"),
        destinations=tuple(reading.destinations()),
        cluster_kinds=tuple(reading.kinds("clusterResourceWhitelist")),
        denied_cluster_kinds=tuple(reading.kinds("clusterResourceBlacklist")),
        kinds=tuple(reading.kinds("namespaceResourceWhitelist"))
        if part(spec, "namespaceResourceWhitelist") is not None
        else None,
        denied_kinds=tuple(reading.kinds("namespaceResourceBlacklist")),
        accounts=tuple(reading.accounts()),
        windows=tuple(reading.windows()),
        orphans=reading.orphans(),
        only_scoped=is_set(spec, "permitOnlyProjectScopedClusters"),
        lists=tuple((one, reading.spot(one)) for one in LISTS if part(spec, one) is not None),
    )
    reading.tell_unplayed()
    return project, reading.findings


def with_global(project: Project, others: tuple[Project, ...]) -> Project:
    """The project with what global projects add to it."""
    for one in others:
        kinds = project.kinds
        if one.kinds:
            kinds = (*(project.kinds or ()), *one.kinds)
        project = msgspec.structs.replace(
            project,
            repositories=(*project.repositories, *one.repositories),
            destinations=(*project.destinations, *one.destinations),
            cluster_kinds=(*project.cluster_kinds, *one.cluster_kinds),
            denied_cluster_kinds=(*project.denied_cluster_kinds, *one.denied_cluster_kinds),
            kinds=kinds,
            denied_kinds=(*project.denied_kinds, *one.denied_kinds),
            accounts=(*project.accounts, *one.accounts),
            windows=(*project.windows, *one.windows),
        )
    return project


def spot(place: Place) -> str:
    """A file, and a line of it where it is known."""
    return f"{place.name}:{place.line}" if place.line else place.name


class _ProjectText:
    """One AppProject, rule by rule."""

    def __init__(self, document: Document, place_of: PlaceOf) -> None:
        self._spec = mapping(document.body, "spec")
        self._place_of = place_of
        self._placed: list[Finding] = []

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(self._placed)

    def spot(self, *path: str | int) -> str:
        return spot(self._place_of(("spec", *path)))

    def names(self, field: str) -> tuple[NameRule, ...]:
        found = enumerate(listed(self._spec, field))
        rules = tuple(
            NameRule(one, self.spot(field, at)) for at, one in found if isinstance(one, str)
        )
        for at, rule in enumerate(rules):
            if rule.pattern == "!*":
                self._denies_all(field, at)
        return rules

    def destinations(self) -> Iterator[DestinationRule]:
        for at, one in self._entries("destinations"):
            rule = DestinationRule(
                server=text(one, "server"),
                name=text(one, "name"),
                namespace=text(one, "namespace"),
                where=self.spot("destinations", at),
            )
            if "!*" in {rule.server, rule.name, rule.namespace}:
                self._denies_all("destinations", at)
            yield rule

    def kinds(self, field: str) -> Iterator[KindRule]:
        for at, one in self._entries(field):
            yield KindRule(
                group=text(one, "group"),
                kind=text(one, "kind"),
                name=text(one, "name"),
                where=self.spot(field, at),
            )

    def accounts(self) -> Iterator[AccountRule]:
        for at, one in self._entries("destinationServiceAccounts"):
            yield AccountRule(
                server=text(one, "server"),
                namespace=text(one, "namespace"),
                account=text(one, "defaultServiceAccount"),
                where=self.spot("destinationServiceAccounts", at),
            )

    def orphans(self) -> OrphanRules | None:
        written = part(self._spec, "orphanedResources")
        if not isinstance(written, dict):
            return None
        ignored = [
            KindRule(
                group=text(one, "group"),
                kind=text(one, "kind", default="*"),
                name=text(one, "name"),
                where=self.spot("orphanedResources"),
            )
            for one in listed(written, "ignore")
            if isinstance(one, dict)
        ]
        return OrphanRules(warns=is_set(written, "warn"), ignored=tuple(ignored))

    def windows(self) -> Iterator[WindowRule]:
        """Those that can be read. One that cannot keeps Argo CD from every sync: it is an error."""
        for at, one in self._entries("syncWindows"):
            duration = self._duration(one, at)
            if duration is None or not self._is_schedule(one, at) or not self._is_kind(one, at):
                continue
            self._look_at(one, at)
            window = SyncWindow(
                allows=text(one, "kind") == "allow",
                schedule=text(one, "schedule"),
                duration=duration,
                zone=self._zone(one, at),
                manual=is_set(one, "manualSync"),
                overruns=is_set(one, "syncOverrun"),
                where=self.spot("syncWindows", at),
            )
            yield WindowRule(
                window=window,
                applications=texts(one, "applications"),
                clusters=texts(one, "clusters"),
                namespaces=texts(one, "namespaces"),
                all_of_them=is_set(one, "andOperator"),
            )

    def tell_unplayed(self) -> None:
        for field in UNPLAYED:
            if part(self._spec, field):
                why = "Argo CD syncs no commit that fails it"
                self._tell("note", (field,), f"`{field}` is not played", why)

    def _entries(self, field: str) -> Iterator[tuple[int, Body]]:
        for at, one in enumerate(listed(self._spec, field)):
            if isinstance(one, dict):
                yield at, one

    def _duration(self, window: Body, at: int) -> Ms | None:
        said = text(window, "duration")
        try:
            return parse_duration(said)
        except ValueError as error:
            self._bad_window(at, "duration", f"`{foreign(said)}` is {error}", "`1h` or `30m`")
            return None

    def _is_schedule(self, window: Body, at: int) -> bool:
        said = text(window, "schedule")
        try:
            parse_schedule(said)
            why = "Argo CD knows no words in it" if said.strip().startswith("@") else ""
        except ScheduleError as error:
            why = str(error)
        if why:
            flaw = f"`{foreign(said)}` is no schedule: {foreign(why)}"
            self._bad_window(at, "schedule", flaw, "five fields, such as `0 22 * * *`")
            return False
        return True

    def _is_kind(self, window: Body, at: int) -> bool:
        kind = text(window, "kind")
        if kind in {"allow", "deny"}:
            return True
        self._bad_window(at, "kind", f"`{foreign(kind)}` is no kind of window", "`allow` or `deny`")
        return False

    def _zone(self, window: Body, at: int) -> str:
        zone = text(window, "timeZone")
        try:
            read_zone(zone)
        except ScheduleError:
            said = f"there is no time zone `{foreign(zone)}`: the window is read in UTC"
            fix = "write a name such as `Europe/Berlin`"
            self._tell("warn", ("syncWindows", at, "timeZone"), said, "Argo CD does the same", fix)
            return ""
        return zone

    def _look_at(self, window: Body, at: int) -> None:
        if not any(texts(window, one) for one in ("applications", "namespaces", "clusters")):
            said = "a sync window is for nobody"
            fix = "name `applications`, `namespaces` or `clusters`"
            self._tell("warn", ("syncWindows", at), said, "it fits no Application", fix)
        if len(text(window, "description")) > LONGEST:
            said = f"the description of a sync window is longer than {LONGEST} signs"
            self._tell("warn", ("syncWindows", at), said, "Argo CD's commands refuse it")

    def _bad_window(self, at: int, field: str, flaw: str, wanted: str) -> None:
        why = "Argo CD syncs nothing of the Applications that the window is for"
        self._tell("error", ("syncWindows", at, field), flaw, why, f"write {wanted}")

    def _denies_all(self, field: str, at: int) -> None:
        why = "Argo CD refuses the project"
        self._tell("error", (field, at), "`!*` denies everything", why, "remove it")

    def _tell(self, how: str, path: FieldPath, said: str, why: str, fix: str = "") -> None:
        known = path[:2]
        telling = Telling(self._place_of(("spec", *known)))
        {"note": telling.note, "warn": telling.warn, "error": telling.error}[how](
            "argo.project-flaw", ("spec", *path), said, why, fix
        )
        self._placed += telling.findings
