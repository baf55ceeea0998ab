"""Applications as `argocd app` shows them, with the wave of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from tidegate.errors import without_user
from tidegate.model.moment import Ms, format_duration
from tidegate.model.objects import Json, Ref
from tidegate.model.reading import mapping, mappings, part, text
from tidegate.model.sync_window import SyncWindow, find_holder
from tidegate.model.verdict import Verdict
from tidegate.report.tables import table_lines

Body = dict[str, Json]
NONE = "<none>"
WAVE = "argocd.argoproj.io/sync-wave"
SHOWN_OF_SOURCE = ("path", "chart", "targetRevision")
LIST = (
    *("NAME", "CLUSTER", "NAMESPACE", "PROJECT", "WAVE", "STATUS", "HEALTH", "SYNCPOLICY"),
    *("CONDITIONS", "REPO", "PATH", "TARGET"),
)
SPARED = ("REPO", "TARGET", "PATH", "CLUSTER", "CONDITIONS", "SYNCPOLICY", "NAMESPACE", "PROJECT")
"""What is left out where it does not fit, the first of these first."""
RESOURCES = (
    *("PHASE", "WAVE", "GROUP", "KIND", "NAMESPACE", "NAME"),
    *("STATUS", "HEALTH", "HOOK", "MESSAGE"),
)
TREE = ("KIND/NAME", "PHASE", "WAVE", "STATUS", "HEALTH", "HOOK", "MESSAGE")
SPARED_OF_RESOURCES = ("GROUP", "MESSAGE", "NAMESPACE", "PHASE")
SHORT = 7
"""Characters of a commit that are shown."""


class ResourceRow(msgspec.Struct, frozen=True):
    """An object of an Application, or what one of them owns.

    `leaves`: Git has it no longer. `hook`: what it is run for, and `ran` how that went. `said`:
    what is told of it besides its health.
    """

    ref: Ref
    wave: int | None
    verdict: Verdict | None
    is_synced: bool | None = None
    leaves: bool = False
    phase: str = ""
    hook: str = ""
    ran: str = ""
    said: str = ""
    owned: tuple[ResourceRow, ...] = ()

    @property
    def status(self) -> str:
        """As Argo CD's own table: of a hook, how its run went."""
        if self.is_synced is None:
            return self.ran
        sync = "Synced" if self.is_synced else "OutOfSync"
        return f"{sync} (requires pruning)" if self.leaves else sync

    @property
    def health(self) -> str:
        return "" if self.verdict is None else str(self.verdict.health)

    @property
    def message(self) -> str:
        return self.said or ("" if self.verdict is None else self.verdict.sentence)


class ApplicationRow(msgspec.Struct, frozen=True):
    """An Application: its own object as Git has it and as it lives, and how it stands."""

    name: str
    wave: int | None
    own: Body
    live: Body
    is_synced: bool
    verdict: Verdict
    resources: tuple[ResourceRow, ...] = ()
    windows: tuple[str, ...] = ("Sync Allowed",)
    """What the windows of its project allow now, and behind that each that is for it."""

    @property
    def sync(self) -> str:
        return "Synced" if self.is_synced else "OutOfSync"


def window_words(windows: Sequence[SyncWindow], now: Ms) -> tuple[str, ...]:
    """What windows allow at a moment, and each of them, as Argo CD's own command writes it."""
    if find_holder(windows, now, asked=False) is None:
        allowed = "Sync Allowed"
    else:
        is_held = find_holder(windows, now, asked=True) is not None
        allowed = "Sync Denied" if is_held else "Manual Allowed"
    each = (f"{one.kind}:{one.schedule}:{format_duration(one.duration)}" for one in windows)
    return allowed, *each


def list_lines(rows: Sequence[ApplicationRow], room: int | None = None) -> Iterator[str]:
    """All of them."""
    yield from table_lines(LIST, [_list_cells(row) for row in rows], room, SPARED)


def _list_cells(row: ApplicationRow) -> tuple[str, ...]:
    spec = mapping(row.own, "spec")
    source = _sources(spec)[0] if _sources(spec) else {}
    return (
        row.name,
        _cluster(spec),
        text(spec, "destination", "namespace"),
        text(spec, "project") or "default",
        "-" if row.wave is None else str(row.wave),
        row.sync,
        str(row.verdict.health),
        _policy(spec),
        ",".join(text(one, "type") for one in mappings(row.live, "status", "conditions")) or NONE,
        text(source, "repoURL"),
        text(source, "path") or text(source, "chart"),
        text(source, "targetRevision"),
    )


def _sources(spec: Body) -> list[Body]:
    return [mapping(spec, "source")] if "source" in spec else list(mappings(spec, "sources"))


def _cluster(spec: Body) -> str:
    return text(spec, "destination", "server") or text(spec, "destination", "name")


def _policy(spec: Body) -> str:
    automated = part(spec, "syncPolicy", "automated")
    if not isinstance(automated, dict) or automated.get("enabled") is False:
        return "Manual"
    return "Auto-Prune" if automated.get("prune") is True else "Auto"


def application_lines(
    row: ApplicationRow, room: int | None = None, *, as_tree: bool = False
) -> Iterator[str]:
    """One of them, with its resources, by their phases and waves."""
    yield from _headed(_head(row))
    yield ""
    yield from resource_lines(row.resources, room, as_tree=as_tree)


def resource_lines(
    rows: Sequence[ResourceRow], room: int | None = None, *, as_tree: bool = False
) -> Iterator[str]:
    """In Argo CD's columns, or in those of its tree; what an object owns stands below it."""
    heads, cells = (TREE, _branch_cells) if as_tree else (RESOURCES, _resource_cells)
    drawn = [cells(one, branch) for one, branch in _branches(rows)]
    spared = [one for one in SPARED_OF_RESOURCES if one in heads]
    yield from table_lines(heads, drawn, room, spared)


def _branches(rows: Sequence[ResourceRow]) -> Iterator[tuple[ResourceRow, str]]:
    """Each, and what is drawn before it."""
    for row in rows:
        yield row, ""
        yield from _below(row, "")


def _below(row: ResourceRow, before: str) -> Iterator[tuple[ResourceRow, str]]:
    for one in row.owned:
        is_last = one is row.owned[-1]
        yield one, f"{before}{'└─' if is_last else '├─'}"
        yield from _below(one, before + ("  " if is_last else "│ "))


def _headed(pairs: Iterator[tuple[str, str]]) -> Iterator[str]:
    for name, value in pairs:
        yield f"{name + ':':<20}{value}".rstrip()


def _head(row: ApplicationRow) -> Iterator[tuple[str, str]]:
    spec, status = mapping(row.own, "spec"), mapping(row.live, "status")
    yield "Name", row.name
    yield "Project", text(spec, "project") or "default"
    yield "Server", _cluster(spec)
    yield "Namespace", text(spec, "destination", "namespace")
    for source in _sources(spec):
        yield "Source", ""
        yield "- Repo", text(source, "repoURL")
        yield "  Target", text(source, "targetRevision")
        yield (
            ("  Chart", text(source, "chart"))
            if "chart" in source
            else ("  Path", text(source, "path"))
        )
    yield "Wave", "-" if row.wave is None else str(row.wave)
    allowed, *windows = row.windows
    yield "SyncWindow", allowed
    if windows:
        yield "Assigned Windows", ",".join(windows)
    yield (
        "Sync Policy",
        {"Auto-Prune": "Automated (Prune)", "Auto": "Automated"}.get(_policy(spec), "Manual"),
    )
    yield "Sync Status", _synced(row, spec, status)
    said = f" ({row.verdict.sentence})" if row.verdict.sentence else ""
    yield "Health Status", f"{row.verdict.health}{said}"
    for one in mappings(status, "conditions"):
        yield "Condition", f"{text(one, 'type')}: {text(one, 'message')}"


def _synced(row: ApplicationRow, spec: Body, status: Body) -> str:
    target = text(_sources(spec)[0], "targetRevision") if _sources(spec) else ""
    revision = text(status, "sync", "revision")
    return f"{row.sync} {'to' if row.is_synced else 'from'} {_target(target, revision)}"


def _target(target: str, revision: str) -> str:
    return f"{target or 'HEAD'} ({revision[:SHORT]})" if revision else target or "HEAD"


def _resource_cells(row: ResourceRow, branch: str) -> tuple[str, ...]:
    ref, wave = row.ref, "" if row.wave is None else str(row.wave)
    names = (ref.kind.group, f"{branch}{ref.kind.name}", ref.namespace, ref.name)
    return (row.phase, wave, *names, row.status, row.health, row.hook, row.message)


def _branch_cells(row: ResourceRow, branch: str) -> tuple[str, ...]:
    wave = "" if row.wave is None else str(row.wave)
    name = f"{branch}{row.ref.kind.name}/{row.ref.name}"
    return (name, row.phase, wave, row.status, row.health, row.hook, row.message)


def history_lines(row: ApplicationRow) -> Iterator[str]:
    """What was rolled out before, the oldest first."""
    entries = mappings(row.live, "status", "history")
    yield from table_lines(("ID", "DATE", "REVISION"), [_history_cells(one) for one in entries])


def _history_cells(entry: Body) -> tuple[str, ...]:
    source = _sources(entry)[0] if _sources(entry) else {}
    shown = _target(text(source, "targetRevision"), text(entry, "revision"))
    return (str(entry.get("id", "")), text(entry, "deployedAt"), shown)


def application_document(row: ApplicationRow) -> Body:
    """For programs, in the form of the object: as much of it as holds no values, and how it stands.

    Values of charts, patches and what controllers copy of them may be secret.
    """
    spec, status = mapping(row.own, "spec"), mapping(row.live, "status")
    resources: list[Json] = [resource_document(one) for one in row.resources]
    sources: list[Json] = [
        {
            "repoURL": without_user(text(one, "repoURL")),
            **{key: one[key] for key in SHOWN_OF_SOURCE if key in one},
        }
        for one in _sources(spec)
    ]
    return {
        "apiVersion": text(row.own, "apiVersion"),
        "kind": "Application",
        "metadata": head_document(row.own),
        "spec": {
            "project": text(spec, "project") or "default",
            "destination": mapping(spec, "destination"),
            "sources": sources,
        },
        "status": {
            "sync": {"status": row.sync, "revision": text(status, "sync", "revision")},
            "health": {"status": str(row.verdict.health), "message": row.verdict.sentence},
            "conditions": [*mappings(status, "conditions")],
            "history": history_documents(row),
            "resources": resources,
        },
        "wave": row.wave,
    }


def history_documents(row: ApplicationRow) -> list[Json]:
    """What was rolled out before, the oldest first."""
    return [
        {key: one[key] for key in ("id", "revision", "deployedAt") if key in one}
        for one in mappings(row.live, "status", "history")
    ]


def head_document(body: Body) -> Body:
    """What an object is called and how it is labelled, with its wave; other notes may be secret."""
    metadata = mapping(body, "metadata")
    notes = mapping(metadata, "annotations")
    head: Body = {key: metadata[key] for key in ("name", "namespace", "labels") if key in metadata}
    return {**head, "annotations": {key: notes[key] for key in (WAVE,) if key in notes}}


def resource_document(one: ResourceRow) -> Body:
    """In the words of Argo CD's own documents, with what it owns."""
    health: Body = {} if one.verdict is None else {"status": one.health, "message": one.message}
    kept: Body = {"status": "Synced" if one.is_synced else "OutOfSync"}
    hook: Body = {"hook": True, "hookType": one.hook, "hookPhase": one.ran, "message": one.said}
    when: Body = {"syncWave": one.wave, "syncPhase": one.phase} if one.phase else {}
    owned: list[Json] = [resource_document(each) for each in one.owned]
    return {
        "group": one.ref.kind.group,
        "version": one.ref.kind.version,
        "kind": one.ref.kind.name,
        "namespace": one.ref.namespace,
        "name": one.ref.name,
        **when,
        **({**kept, "requiresPruning": one.leaves} if one.is_synced is not None else {}),
        **(hook if one.hook else {}),
        **({"health": health} if health else {}),
        **({"owned": owned} if owned else {}),
    }
