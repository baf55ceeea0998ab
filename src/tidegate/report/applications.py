"""Applications with their waves, formatted like the output of `argocd app`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from tidegate.errors import redact_urls
from tidegate.model.k8s.json_fields import get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import Json, JsonObject
from tidegate.model.k8s.verdict import Verdict
from tidegate.model.times import Ms, format_duration
from tidegate.model.units.sync_window import SyncWindow, find_blocking_window
from tidegate.model.views.resources import ResourceRow
from tidegate.report.tables import table_lines

NONE = "<none>"
SYNC_WAVE = "argocd.argoproj.io/sync-wave"
SOURCE_KEYS = ("path", "chart", "targetRevision")
LIST_COLUMNS = (
    *("NAME", "CLUSTER", "NAMESPACE", "PROJECT", "WAVE", "STATUS", "HEALTH", "SYNCPOLICY"),
    *("CONDITIONS", "REPO", "PATH", "TARGET"),
)
OPTIONAL_COLUMNS = (
    "REPO",
    "TARGET",
    "PATH",
    "CLUSTER",
    "CONDITIONS",
    "SYNCPOLICY",
    "NAMESPACE",
    "PROJECT",
)
"""Columns that are dropped first on a narrow terminal."""
RESOURCE_COLUMNS = (
    *("PHASE", "WAVE", "GROUP", "KIND", "NAMESPACE", "NAME"),
    *("STATUS", "HEALTH", "HOOK", "MESSAGE"),
)
TREE_COLUMNS = ("KIND/NAME", "PHASE", "WAVE", "STATUS", "HEALTH", "HOOK", "MESSAGE")
OPTIONAL_RESOURCE_COLUMNS = ("GROUP", "MESSAGE", "NAMESPACE", "PHASE")
SHORT_REVISION = 7
"""Number of characters of a commit that are shown."""


class ApplicationRow(msgspec.Struct, frozen=True):
    """An Application in Git and in the cluster, with its status."""

    name: str
    wave: int | None
    desired: JsonObject
    """The Application as in Git."""
    live: JsonObject
    is_synced: bool
    verdict: Verdict
    resources: tuple[ResourceRow, ...] = ()
    windows: tuple[str, ...] = ("Sync Allowed",)
    """What the sync windows allow now, followed by each assigned window."""

    @property
    def sync(self) -> str:
        return "Synced" if self.is_synced else "OutOfSync"


def sync_window_texts(windows: Sequence[SyncWindow], now: Ms) -> tuple[str, ...]:
    """Return what sync windows allow at a time, and each window, as Argo CD prints it."""
    if find_blocking_window(windows, now, is_manual=False) is None:
        allowed = "Sync Allowed"
    else:
        is_denied = find_blocking_window(windows, now, is_manual=True) is not None
        allowed = "Sync Denied" if is_denied else "Manual Allowed"
    texts = (
        f"{window.kind}:{window.schedule}:{format_duration(window.duration)}" for window in windows
    )
    return allowed, *texts


def application_list_lines(
    rows: Sequence[ApplicationRow], max_width: int | None = None
) -> Iterator[str]:
    """Yield a table of all Applications."""
    yield from table_lines(
        LIST_COLUMNS, [_application_cells(row) for row in rows], max_width, OPTIONAL_COLUMNS
    )


def _application_cells(row: ApplicationRow) -> tuple[str, ...]:
    spec = get_mapping(row.desired, "spec")
    source = _sources(spec)[0] if _sources(spec) else {}
    return (
        row.name,
        _cluster(spec),
        get_text(spec, "destination", "namespace"),
        get_text(spec, "project") or "default",
        "-" if row.wave is None else str(row.wave),
        row.sync,
        str(row.verdict.health),
        _sync_policy(spec),
        ",".join(
            get_text(condition, "type")
            for condition in get_mappings(row.live, "status", "conditions")
        )
        or NONE,
        get_text(source, "repoURL"),
        get_text(source, "path") or get_text(source, "chart"),
        get_text(source, "targetRevision"),
    )


def _sources(spec: JsonObject) -> list[JsonObject]:
    return (
        [get_mapping(spec, "source")] if "source" in spec else list(get_mappings(spec, "sources"))
    )


def _cluster(spec: JsonObject) -> str:
    return get_text(spec, "destination", "server") or get_text(spec, "destination", "name")


def _sync_policy(spec: JsonObject) -> str:
    automated = get_value(spec, "syncPolicy", "automated")
    if not isinstance(automated, dict) or automated.get("enabled") is False:
        return "Manual"
    return "Auto-Prune" if automated.get("prune") is True else "Auto"


def application_lines(
    row: ApplicationRow, max_width: int | None = None, *, as_tree: bool = False
) -> Iterator[str]:
    """Yield one Application with its resources, by phase and wave."""
    yield from _header_lines(_header_fields(row))
    yield ""
    yield from resource_lines(row.resources, max_width, as_tree=as_tree)


def resource_lines(
    rows: Sequence[ResourceRow], max_width: int | None = None, *, as_tree: bool = False
) -> Iterator[str]:
    """Yield resources like `argocd app get`; owned objects follow their owner."""
    columns, cells = (TREE_COLUMNS, _tree_cells) if as_tree else (RESOURCE_COLUMNS, _resource_cells)
    cells_by_row = [cells(row, branch) for row, branch in _tree_rows(rows)]
    optional = [column for column in OPTIONAL_RESOURCE_COLUMNS if column in columns]
    yield from table_lines(columns, cells_by_row, max_width, optional)


def _tree_rows(rows: Sequence[ResourceRow]) -> Iterator[tuple[ResourceRow, str]]:
    """Yield each row with its tree prefix."""
    for row in rows:
        yield row, ""
        yield from _child_rows(row, "")


def _child_rows(row: ResourceRow, prefix: str) -> Iterator[tuple[ResourceRow, str]]:
    for child in row.owned:
        is_last = child is row.owned[-1]
        yield child, f"{prefix}{'└─' if is_last else '├─'}"
        yield from _child_rows(child, prefix + ("  " if is_last else "│ "))


def _header_lines(fields: Iterator[tuple[str, str]]) -> Iterator[str]:
    for name, value in fields:
        yield f"{name + ':':<20}{value}".rstrip()


def _header_fields(row: ApplicationRow) -> Iterator[tuple[str, str]]:
    spec, status = get_mapping(row.desired, "spec"), get_mapping(row.live, "status")
    yield "Name", row.name
    yield "Project", get_text(spec, "project") or "default"
    yield "Server", _cluster(spec)
    yield "Namespace", get_text(spec, "destination", "namespace")
    for source in _sources(spec):
        yield "Source", ""
        yield "- Repo", get_text(source, "repoURL")
        yield "  Target", get_text(source, "targetRevision")
        yield (
            ("  Chart", get_text(source, "chart"))
            if "chart" in source
            else ("  Path", get_text(source, "path"))
        )
    yield "Wave", "-" if row.wave is None else str(row.wave)
    allowed, *windows = row.windows
    yield "SyncWindow", allowed
    if windows:
        yield "Assigned Windows", ",".join(windows)
    yield (
        "Sync Policy",
        {"Auto-Prune": "Automated (Prune)", "Auto": "Automated"}.get(_sync_policy(spec), "Manual"),
    )
    yield "Sync Status", _sync_text(row, spec, status)
    message = f" ({row.verdict.message})" if row.verdict.message else ""
    yield "Health Status", f"{row.verdict.health}{message}"
    for condition in get_mappings(status, "conditions"):
        yield "Condition", f"{get_text(condition, 'type')}: {get_text(condition, 'message')}"


def _sync_text(row: ApplicationRow, spec: JsonObject, status: JsonObject) -> str:
    target = get_text(_sources(spec)[0], "targetRevision") if _sources(spec) else ""
    revision = get_text(status, "sync", "revision")
    return f"{row.sync} {'to' if row.is_synced else 'from'} {_revision_text(target, revision)}"


def _revision_text(target: str, revision: str) -> str:
    return f"{target or 'HEAD'} ({revision[:SHORT_REVISION]})" if revision else target or "HEAD"


def _resource_cells(row: ResourceRow, branch: str) -> tuple[str, ...]:
    ref, wave = row.ref, "" if row.wave is None else str(row.wave)
    names = (ref.kind.group, f"{branch}{ref.kind.name}", ref.namespace, ref.name)
    return (row.phase, wave, *names, row.status, row.health, row.hook, row.message)


def _tree_cells(row: ResourceRow, branch: str) -> tuple[str, ...]:
    wave = "" if row.wave is None else str(row.wave)
    name = f"{branch}{row.ref.kind.name}/{row.ref.name}"
    return (name, row.phase, wave, row.status, row.health, row.hook, row.message)


def history_lines(row: ApplicationRow) -> Iterator[str]:
    """Yield the history of an Application, oldest first."""
    entries = get_mappings(row.live, "status", "history")
    yield from table_lines(("ID", "DATE", "REVISION"), [_history_cells(entry) for entry in entries])


def _history_cells(entry: JsonObject) -> tuple[str, ...]:
    source = _sources(entry)[0] if _sources(entry) else {}
    shown = _revision_text(get_text(source, "targetRevision"), get_text(entry, "revision"))
    return (str(entry.get("id", "")), get_text(entry, "deployedAt"), shown)


def application_document(row: ApplicationRow) -> JsonObject:
    """Return an Application in the form of its manifest, without values, and with its status.

    Chart values, patches and the copies of them in the status may be secret.
    """
    spec, status = get_mapping(row.desired, "spec"), get_mapping(row.live, "status")
    resources: list[Json] = [resource_document(resource) for resource in row.resources]
    sources: list[Json] = [
        {
            "repoURL": redact_urls(get_text(source, "repoURL")),
            **{key: source[key] for key in SOURCE_KEYS if key in source},
        }
        for source in _sources(spec)
    ]
    return {
        "apiVersion": get_text(row.desired, "apiVersion"),
        "kind": "Application",
        "metadata": metadata_document(row.desired),
        "spec": {
            "project": get_text(spec, "project") or "default",
            "destination": get_mapping(spec, "destination"),
            "sources": sources,
        },
        "status": {
            "sync": {"status": row.sync, "revision": get_text(status, "sync", "revision")},
            "health": {"status": str(row.verdict.health), "message": row.verdict.message},
            "conditions": [*get_mappings(status, "conditions")],
            "history": history_documents(row),
            "resources": resources,
        },
        "wave": row.wave,
    }


def history_documents(row: ApplicationRow) -> list[Json]:
    """Return the history of an Application, oldest first."""
    return [
        {key: entry[key] for key in ("id", "revision", "deployedAt") if key in entry}
        for entry in get_mappings(row.live, "status", "history")
    ]


def metadata_document(body: JsonObject) -> JsonObject:
    """Return name, namespace, labels and wave of an object; other annotations may be secret."""
    metadata = get_mapping(body, "metadata")
    annotations = get_mapping(metadata, "annotations")
    identity: JsonObject = {
        key: metadata[key] for key in ("name", "namespace", "labels") if key in metadata
    }
    return {
        **identity,
        "annotations": {key: annotations[key] for key in (SYNC_WAVE,) if key in annotations},
    }


def resource_document(row: ResourceRow) -> JsonObject:
    """Return a resource with its owned objects, in the terms of Argo CD."""
    health: JsonObject = (
        {} if row.verdict is None else {"status": row.health, "message": row.message}
    )
    sync_status: JsonObject = {"status": "Synced" if row.is_synced else "OutOfSync"}
    hook: JsonObject = {
        "hook": True,
        "hookType": row.hook,
        "hookPhase": row.hook_result,
        "message": row.detail,
    }
    order: JsonObject = {"syncWave": row.wave, "syncPhase": row.phase} if row.phase else {}
    owned: list[Json] = [resource_document(child) for child in row.owned]
    return {
        "group": row.ref.kind.group,
        "version": row.ref.kind.version,
        "kind": row.ref.kind.name,
        "namespace": row.ref.namespace,
        "name": row.ref.name,
        **order,
        **(
            {**sync_status, "requiresPruning": row.requires_pruning}
            if row.is_synced is not None
            else {}
        ),
        **(hook if row.hook else {}),
        **({"health": health} if health else {}),
        **({"owned": owned} if owned else {}),
    }
