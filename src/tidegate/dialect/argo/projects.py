"""AppProjects: permitted sources, destinations and kinds, sync windows, and their locations."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from tidegate.dialect.argo.finding_collector import FindingCollector
from tidegate.dialect.argo.render_requests import is_true, string_list
from tidegate.documents import Document
from tidegate.errors import Location, sanitize
from tidegate.model.finding import Finding
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_text, get_value
from tidegate.model.k8s.objects import FieldPath, JsonObject
from tidegate.model.times import Ms, parse_duration
from tidegate.model.units.project import (
    DestinationRule,
    KindRule,
    NameRule,
    OrphanRules,
    Project,
    ServiceAccountRule,
    WindowRule,
)
from tidegate.model.units.schedule import ScheduleError, parse_schedule, parse_time_zone
from tidegate.model.units.sync_window import SyncWindow

KIND = "AppProject"
LIST_FIELDS = (
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
UNSUPPORTED_FIELDS = ("signatureKeys", "sourceIntegrity")
MAX_DESCRIPTION_LENGTH = 255
"""Maximum number of characters in the description of a sync window."""
LocateField = Callable[[FieldPath], Location]


def rule_paths(document: Document) -> Iterator[FieldPath]:
    """Yield the paths of an AppProject whose locations its rules need."""
    for field in (*LIST_FIELDS, *UNSUPPORTED_FIELDS):
        if get_value(document.body, "spec", field) is not None:
            yield ("spec", field)
        for index, _ in enumerate(get_list(document.body, "spec", field)):
            yield ("spec", field, index)


def read_project(
    document: Document, namespace: str, locate: LocateField
) -> tuple[Project, tuple[Finding, ...]]:
    """Read the project and the findings about it; `namespace` is used if the AppProject has none.

    An empty `namespace` means that it is unknown.
    """
    reader = _ProjectReader(document, locate)
    spec, body = get_mapping(document.body, "spec"), document.body
    labels = get_mapping(body, "metadata", "labels")
    project = Project(
        name=get_text(body, "metadata", "name"),
        namespace=get_text(body, "metadata", "namespace", default=namespace),
        location=location_text(document.location),
        labels=tuple((key, value) for key, value in labels.items() if isinstance(value, str)),
        repositories=reader.name_rules("sourceRepos"),
        namespaces=reader.name_rules("sourceNamespaces"),
        destinations=tuple(reader.destination_rules()),
        cluster_kinds=tuple(reader.kind_rules("clusterResourceWhitelist")),
        denied_cluster_kinds=tuple(reader.kind_rules("clusterResourceBlacklist")),
        kinds=tuple(reader.kind_rules("namespaceResourceWhitelist"))
        if get_value(spec, "namespaceResourceWhitelist") is not None
        else None,
        denied_kinds=tuple(reader.kind_rules("namespaceResourceBlacklist")),
        accounts=tuple(reader.account_rules()),
        windows=tuple(reader.window_rules()),
        orphans=reader.orphan_rules(),
        only_scoped=is_true(spec, "permitOnlyProjectScopedClusters"),
        lists=tuple(
            (field, reader.location(field))
            for field in LIST_FIELDS
            if get_value(spec, field) is not None
        ),
    )
    reader.report_unsupported()
    return project, reader.findings


def with_global_projects(project: Project, global_projects: tuple[Project, ...]) -> Project:
    """Return the project with the rules of the global projects added."""
    for global_project in global_projects:
        kinds = project.kinds
        if global_project.kinds:
            kinds = (*(project.kinds or ()), *global_project.kinds)
        project = msgspec.structs.replace(
            project,
            repositories=(*project.repositories, *global_project.repositories),
            destinations=(*project.destinations, *global_project.destinations),
            cluster_kinds=(*project.cluster_kinds, *global_project.cluster_kinds),
            denied_cluster_kinds=(
                *project.denied_cluster_kinds,
                *global_project.denied_cluster_kinds,
            ),
            kinds=kinds,
            denied_kinds=(*project.denied_kinds, *global_project.denied_kinds),
            accounts=(*project.accounts, *global_project.accounts),
            windows=(*project.windows, *global_project.windows),
        )
    return project


def location_text(location: Location) -> str:
    """Return the file, with the line if known."""
    return f"{location.name}:{location.line}" if location.line else location.name


class _ProjectReader:
    """Reader of the rules of one AppProject."""

    def __init__(self, document: Document, locate: LocateField) -> None:
        self._spec = get_mapping(document.body, "spec")
        self._locate = locate
        self._findings: list[Finding] = []

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(self._findings)

    def location(self, *path: str | int) -> str:
        return location_text(self._locate(("spec", *path)))

    def name_rules(self, field: str) -> tuple[NameRule, ...]:
        entries = enumerate(get_list(self._spec, field))
        rules = tuple(
            NameRule(pattern, self.location(field, index))
            for index, pattern in entries
            if isinstance(pattern, str)
        )
        for index, rule in enumerate(rules):
            if rule.pattern == "!*":
                self._report_deny_all(field, index)
        return rules

    def destination_rules(self) -> Iterator[DestinationRule]:
        for index, entry in self._entries("destinations"):
            rule = DestinationRule(
                server=get_text(entry, "server"),
                name=get_text(entry, "name"),
                namespace=get_text(entry, "namespace"),
                location=self.location("destinations", index),
            )
            if "!*" in {rule.server, rule.name, rule.namespace}:
                self._report_deny_all("destinations", index)
            yield rule

    def kind_rules(self, field: str) -> Iterator[KindRule]:
        for index, entry in self._entries(field):
            yield KindRule(
                group=get_text(entry, "group"),
                kind=get_text(entry, "kind"),
                name=get_text(entry, "name"),
                location=self.location(field, index),
            )

    def account_rules(self) -> Iterator[ServiceAccountRule]:
        for index, entry in self._entries("destinationServiceAccounts"):
            yield ServiceAccountRule(
                server=get_text(entry, "server"),
                namespace=get_text(entry, "namespace"),
                account=get_text(entry, "defaultServiceAccount"),
                location=self.location("destinationServiceAccounts", index),
            )

    def orphan_rules(self) -> OrphanRules | None:
        settings = get_value(self._spec, "orphanedResources")
        if not isinstance(settings, dict):
            return None
        ignored = [
            KindRule(
                group=get_text(entry, "group"),
                kind=get_text(entry, "kind", default="*"),
                name=get_text(entry, "name"),
                location=self.location("orphanedResources"),
            )
            for entry in get_list(settings, "ignore")
            if isinstance(entry, dict)
        ]
        return OrphanRules(warns=is_true(settings, "warn"), ignored=tuple(ignored))

    def window_rules(self) -> Iterator[WindowRule]:
        """Yield the valid sync windows. An invalid one is an error: Argo CD blocks every sync."""
        for index, entry in self._entries("syncWindows"):
            duration = self._duration(entry, index)
            if (
                duration is None
                or not self._is_valid_schedule(entry, index)
                or not self._is_valid_kind(entry, index)
            ):
                continue
            self._report_window_problems(entry, index)
            window = SyncWindow(
                allows=get_text(entry, "kind") == "allow",
                schedule=get_text(entry, "schedule"),
                duration=duration,
                zone=self._zone(entry, index),
                manual=is_true(entry, "manualSync"),
                overruns=is_true(entry, "syncOverrun"),
                where=self.location("syncWindows", index),
            )
            yield WindowRule(
                window=window,
                applications=string_list(entry, "applications"),
                clusters=string_list(entry, "clusters"),
                namespaces=string_list(entry, "namespaces"),
                all_of_them=is_true(entry, "andOperator"),
            )

    def report_unsupported(self) -> None:
        for field in UNSUPPORTED_FIELDS:
            if get_value(self._spec, field):
                why = "Argo CD does not sync a commit that fails it"
                self._report("note", (field,), f"`{field}` is not supported", why)

    def _entries(self, field: str) -> Iterator[tuple[int, JsonObject]]:
        for index, entry in enumerate(get_list(self._spec, field)):
            if isinstance(entry, dict):
                yield index, entry

    def _duration(self, window: JsonObject, index: int) -> Ms | None:
        value = get_text(window, "duration")
        try:
            return parse_duration(value)
        except ValueError as error:
            self._report_invalid_window(
                index, "duration", f"`{sanitize(value)}` is {error}", "`1h` or `30m`"
            )
            return None

    def _is_valid_schedule(self, window: JsonObject, index: int) -> bool:
        value = get_text(window, "schedule")
        try:
            parse_schedule(value)
            why = "Argo CD does not support aliases" if value.strip().startswith("@") else ""
        except ScheduleError as error:
            why = str(error)
        if why:
            problem = f"`{sanitize(value)}` is not a valid schedule: {sanitize(why)}"
            self._report_invalid_window(
                index, "schedule", problem, "five fields, such as `0 22 * * *`"
            )
            return False
        return True

    def _is_valid_kind(self, window: JsonObject, index: int) -> bool:
        kind = get_text(window, "kind")
        if kind in {"allow", "deny"}:
            return True
        self._report_invalid_window(
            index, "kind", f"`{sanitize(kind)}` is not a kind of sync window", "`allow` or `deny`"
        )
        return False

    def _zone(self, window: JsonObject, index: int) -> str:
        zone = get_text(window, "timeZone")
        try:
            parse_time_zone(zone)
        except ScheduleError:
            message = f"unknown time zone `{sanitize(zone)}`; using UTC"
            fix = "set a time zone such as `Europe/Berlin`"
            path: FieldPath = ("syncWindows", index, "timeZone")
            self._report("warn", path, message, "Argo CD also uses UTC", fix)
            return ""
        return zone

    def _report_window_problems(self, window: JsonObject, index: int) -> None:
        if not any(
            string_list(window, field) for field in ("applications", "namespaces", "clusters")
        ):
            message = "the sync window applies to no Application"
            fix = "set `applications`, `namespaces` or `clusters`"
            why = "it selects no applications, namespaces or clusters"
            self._report("warn", ("syncWindows", index), message, why, fix)
        if len(get_text(window, "description")) > MAX_DESCRIPTION_LENGTH:
            message = (
                "the description of the sync window is longer than"
                f" {MAX_DESCRIPTION_LENGTH} characters"
            )
            why = "the `argocd` CLI rejects it"
            self._report("warn", ("syncWindows", index), message, why)

    def _report_invalid_window(self, index: int, field: str, problem: str, expected: str) -> None:
        why = "Argo CD syncs none of the Applications that the window matches"
        self._report("error", ("syncWindows", index, field), problem, why, f"use {expected}")

    def _report_deny_all(self, field: str, index: int) -> None:
        why = "Argo CD rejects the project"
        self._report("error", (field, index), "`!*` denies everything", why, "remove it")

    def _report(
        self, severity: str, path: FieldPath, message: str, why: str, fix: str = ""
    ) -> None:
        known_path = path[:2]
        collector = FindingCollector(self._locate(("spec", *known_path)))
        {"note": collector.note, "warn": collector.warn, "error": collector.error}[severity](
            "argo.project-invalid", ("spec", *path), message, why, fix
        )
        self._findings += collector.findings
