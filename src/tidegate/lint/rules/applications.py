"""Rules about Applications and ApplicationSets: ineffective waves and steps, sources."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from tidegate.documents import Document
from tidegate.lint.context import LintContext, LintObject
from tidegate.lint.rule import Diagnostic, FieldRef, rule
from tidegate.lint.unit_positions import WAVE
from tidegate.model.display import count_noun, join_limited
from tidegate.model.finding import Severity
from tidegate.model.k8s.json_fields import get_list, get_mapping, get_mappings, get_text, get_value
from tidegate.model.k8s.objects import FieldPath, JsonObject
from tidegate.model.units.policy import Order
from tidegate.model.units.rendering import Directory, ToolDetection
from tidegate.model.units.semantics import ChildGates
from tidegate.model.units.unit import UnitId, UnitSource

ARGO = "argoproj.io"
HEALTH_SETTING = "resource.customizations.health.argoproj.io_Application"
LEGACY_HEALTH_SETTING = "resource.customizations"
TOOL_FILES = ("Chart.yaml", "kustomization.yaml", "kustomization.yml", "Kustomization")
MOVING_REVISIONS = ("", "HEAD", "main", "master", "develop", "trunk")
APPLICATION_HEALTH_LUA = """resource.customizations.health.argoproj.io_Application: |
  hs = {status = "Progressing", message = ""}
  if obj.status ~= nil and obj.status.health ~= nil then
    local done = obj.status.operationState ~= nil and obj.status.operationState.phase == "Succeeded"
    local synced = obj.status.sync ~= nil and obj.status.sync.status == "Synced"
    if obj.status.health.status ~= "Healthy" then
      hs.status = obj.status.health.status
    elseif synced and done then
      hs.status = "Healthy"
    end
    hs.message = obj.status.health.message or ""
  end
  return hs"""


def children_by_parent(context: LintContext) -> dict[UnitId, list[LintObject]]:
    """Return the child Applications that are ordered by waves, by parent."""
    children: dict[UnitId, list[LintObject]] = {}
    for obj in context.objects_of_kind(ARGO, "Application"):
        if obj.unit.policy.order is Order.WAVES:
            children.setdefault(obj.unit.id, []).append(obj)
    return children


def _after_first_wave(children: list[LintObject]) -> list[LintObject]:
    """Return the children that are not in the first wave."""
    first_wave = min(child.manifest.wave for child in children)
    return [child for child in children if child.manifest.wave > first_wave]


@rule(
    "ORD011",
    "Waves do not wait for child Applications",
    Severity.WARNING,
    why=(
        "Argo CD has had no built-in health check for Application since 1.8, so a child Application"
        " counts as healthy as soon as it exists"
    ),
    fix="add a health check for Application to argocd-cm",
)
def children_without_health(context: LintContext) -> Iterator[Diagnostic]:
    script = (
        str(context.settings[HEALTH_SETTING].value) if HEALTH_SETTING in context.settings else ""
    )
    legacy_setting = context.settings.get(LEGACY_HEALTH_SETTING)
    if legacy_setting is not None and "argoproj.io/Application" in str(legacy_setting.value):
        script = script or str(legacy_setting.value)
    for parent, children in children_by_parent(context).items():
        later = _after_first_wave(children)
        if not later or (context.units[parent].policy.semantics.name == "tidegate" and parent.kind):
            continue
        if not parent.kind:
            # An Application, or `helm install`, deploys a chart with these Applications.
            if "/templates/" not in f"/{later[0].document.location.name}":
                yield _unused_waves(context, parent, later)
        elif not script and context.units[parent].policy.semantics.child_gates is ChildGates.NEVER:
            yield _missing_health_check(context, parent, children, later)
        elif script and "sync" not in script and "operationState" not in script:
            yield _stale_health_check(context, parent, later)


def _unused_waves(context: LintContext, parent: UnitId, later: list[LintObject]) -> Diagnostic:
    return Diagnostic(
        severity=Severity.NOTE if context.has_unread_units else Severity.WARNING,
        message=(
            f"the sync waves of {count_noun(len(later), 'Application')} in `{parent.name}` have no"
            " effect, because no Application applies this directory"
        ),
        at=FieldRef(later[0].document, ("metadata", "annotations", WAVE)),
        why=(
            "a sync wave orders the objects of one Application; no parent Application syncs these"
            " Applications"
        ),
        fix=(
            "create a parent Application for this directory (app of apps), and add a health check"
            " for Application to argocd-cm"
        ),
        semantics=("argocd",),
    )


def _missing_health_check(
    context: LintContext, parent: UnitId, children: list[LintObject], later: list[LintObject]
) -> Diagnostic:
    waves = sorted({child.manifest.wave for child in children})
    first_names = [f"`{child.ref.name}`" for child in children if child.manifest.wave == waves[0]]
    next_names = [f"`{child.ref.name}`" for child in children if child.manifest.wave == waves[1]]
    return Diagnostic(
        message=(
            f"the waves of `{parent}` do not wait for its {len(children)} child Applications,"
            " because there is no health check for Application"
        ),
        at=FieldRef(later[0].document, ("metadata", "annotations", WAVE)),
        sequence=(
            f"wave {waves[0]} of `{parent}` creates {join_limited(first_names)}",
            (
                "Argo CD has no health check for Application, so each Application counts as healthy"
                " as soon as it exists"
            ),
            (
                f"2 s later wave {waves[1]} creates {join_limited(next_names)}, before the objects"
                f" of wave {waves[0]} are deployed"
            ),
        ),
        snippet=APPLICATION_HEALTH_LUA,
        severity=Severity.WARNING,
        semantics=("argocd",),
        fix="add this health check to `data` of the ConfigMap argocd-cm"
        + ("" if context.settings else ", unless the cluster already has it"),
    )


def _stale_health_check(
    context: LintContext, parent: UnitId, later: list[LintObject]
) -> Diagnostic:
    return Diagnostic(
        message=f"the health check for Application ignores the sync status, so waves of `{parent}`"
        " can pass on stale health",
        at=(
            context.settings[HEALTH_SETTING].location
            if HEALTH_SETTING in context.settings
            else FieldRef(later[0].document, ("metadata", "annotations", WAVE))
        ),
        severity=Severity.NOTE,
        why=(
            "right after a change, a child Application still reports the health of the previous"
            " revision"
        ),
        fix="check `status.sync` and `status.operationState` in the health check as well",
        snippet=APPLICATION_HEALTH_LUA,
        semantics=("argocd",),
    )


@rule(
    "ORD057",
    "Wave does not wait for the Applications of an ApplicationSet",
    Severity.WARNING,
    why=(
        "an ApplicationSet is healthy as soon as it has generated its Applications; only with"
        " RollingSync does Argo CD check their health"
    ),
    fix=(
        "use RollingSync in the ApplicationSet, or move the later objects to a later step of the"
        " same ApplicationSet"
    ),
)
def appset_in_wave(context: LintContext) -> Iterator[Diagnostic]:
    """Yield ApplicationSets without RollingSync before other Applications or ApplicationSets.

    Argo CD v3.5.1, resource_customizations/argoproj.io/ApplicationSet/health.lua: the condition
    `ResourcesUpToDate` is enough, unless RollingSync sets `RolloutProgressing`.
    """
    for appset in context.objects_of_kind(ARGO, "ApplicationSet"):
        unit = appset.unit
        semantics = unit.policy.semantics.name
        if unit.policy.order is not Order.WAVES or semantics == "tidegate":
            continue
        if get_text(appset.body, "spec", "strategy", "type") == "RollingSync":
            continue
        in_later_waves = [
            other
            for other in (
                *children_by_parent(context).get(unit.id, ()),
                *_appsets_of(context, unit.id),
            )
            if other.manifest.wave > appset.manifest.wave
        ]
        if in_later_waves:
            yield _passing_appset(appset, in_later_waves, semantics)


def _appsets_of(context: LintContext, parent: UnitId) -> list[LintObject]:
    return [
        appset
        for appset in context.objects_of_kind(ARGO, "ApplicationSet")
        if appset.unit.id == parent
    ]


def _passing_appset(
    appset: LintObject, in_later_waves: list[LintObject], semantics: str
) -> Diagnostic:
    wave, next_object = (
        appset.manifest.wave,
        min(in_later_waves, key=lambda other: other.manifest.wave),
    )
    return Diagnostic(
        message=(
            f"wave {next_object.manifest.wave} of `{appset.unit.id}` does not wait for the"
            f" Applications of ApplicationSet `{appset.ref.name}` in wave {wave}"
        ),
        at=FieldRef(appset.document, ("metadata", "annotations", WAVE)),
        related=(FieldRef(next_object.document),),
        sequence=(
            f"wave {wave} of `{appset.unit.id}` applies ApplicationSet `{appset.ref.name}`",
            (
                f"ApplicationSet `{appset.ref.name}` generates its Applications and is healthy at"
                " once"
            ),
            (
                f"2 s later wave {next_object.manifest.wave} applies {next_object.ref.kind.name}"
                f" `{next_object.ref.name}`, before these Applications are deployed"
            ),
        ),
        semantics=(semantics,),
    )


@rule(
    "ORD012",
    "Child Applications track the same branch as their parent",
    Severity.NOTE,
    why=(
        "each child Application syncs a new commit on its own, so the commit bypasses the waves of"
        " the parent"
    ),
    fix=(
        "pin `targetRevision` of the child Applications, so that each release goes through the"
        " parent"
    ),
)
def children_on_same_branch(context: LintContext) -> Iterator[Diagnostic]:
    for parent, children in children_by_parent(context).items():
        unit_resource = context.unit_resources.get(parent)
        later = _after_first_wave(children)
        if unit_resource is None or not later:
            continue
        parent_branches = set(_branches(unit_resource.body))
        on_same_branch = [
            child
            for child in later
            if "automated" in get_mapping(child.body, "spec", "syncPolicy")
            and parent_branches & set(_branches(child.body))
        ]
        if on_same_branch:
            yield Diagnostic(
                message=(
                    f"`{parent}` has {_count_text(on_same_branch)} with automated sync on the same"
                    " branch, so a commit bypasses the waves"
                ),
                at=FieldRef(
                    on_same_branch[0].document, ("spec", _source_field(on_same_branch[0].body))
                ),
                semantics=("argocd",),
            )


def _count_text(children: list[LintObject]) -> str:
    return f"{len(children)} child Application{'' if len(children) == 1 else 's'}"


def _source_field(body: JsonObject) -> str:
    """Return the field with the sources of an Application."""
    return "sources" if get_mappings(body, "spec", "sources") else "source"


def _branches(body: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield the repositories and branches that an Application tracks."""
    spec = get_mapping(body, "spec")
    for source in (get_mapping(spec, "source"), *get_mappings(spec, "sources")):
        revision = get_text(source, "targetRevision")
        if (
            get_text(source, "repoURL")
            and not get_text(source, "chart")
            and revision in MOVING_REVISIONS
        ):
            yield get_text(source, "repoURL").removesuffix(".git"), revision or "HEAD"


@rule(
    "ORD048",
    "Application is not included by its parent",
    Severity.WARNING,
    why="the file is in a directory that the parent applies, but the parent does not include it",
    fix=(
        "include the file (`directory.recurse`, `directory.include`, or `resources` of the"
        " kustomization), or move it to another directory"
    ),
)
def undeployed_application(context: LintContext) -> Iterator[Diagnostic]:
    folders: dict[str, list[UnitId]] = {}
    for unit_id, unit in context.units.items():
        is_applied = unit.parent is not None and unit.parent.kind == "Application"
        if unit_id.kind == "Application" and unit.location and unit.parent and is_applied:
            folders.setdefault(_folder(unit.location.name), []).append(unit.parent)
    parent_ids = {child_unit.parent for child_unit in context.units.values()}
    for unit_id, unit in context.units.items():
        has_parent = unit.parent is not None and unit.parent.kind
        if unit_id.kind != "Application" or has_parent or unit.location is None:
            continue
        folder = _folder(unit.location.name)
        parents = folders.get(folder, [])
        above, parent_above = _parent_above(context, folder, folders)
        if not (parents or above) or unit_id in parent_ids:
            continue
        message = (
            f"`{unit_id}` is in a directory that `{parents[0]}` applies, but `{parents[0]}` does"
            " not include it"
            if parents
            else f"`{unit_id}` is below `{above}`, but `{parent_above}` does not include"
            " subdirectories"
        )
        unit_resource = context.unit_resources.get(unit_id)
        yield Diagnostic(
            message=message,
            at=FieldRef(unit_resource) if unit_resource is not None else unit.location,
            fix="" if parents else f"set `directory.recurse: true` in `{parent_above}`, or move it",
            semantics=("argocd",),
        )


def _parent_above(
    context: LintContext, folder: str, folders: dict[str, list[UnitId]]
) -> tuple[str, UnitId | None]:
    """Return the closest directory above that an Application applies without subdirectories."""
    while folder := _folder(folder):
        for parent in folders.get(folder, ()):
            sources = context.units[parent].sources if parent in context.units else ()
            if any(_reads_one_directory(context, source, folder) for source in sources):
                return folder, parent
    return "", None


def _reads_one_directory(context: LintContext, source: UnitSource, folder: str) -> bool:
    """Return whether a source is the manifests of this directory alone."""
    request = source.request
    if posixpath.normpath(source.path or ".") != folder:
        return False
    if isinstance(request, Directory):
        return not request.recurse
    is_tool = any(f"{folder}/{name}" in context.files for name in TOOL_FILES)
    return isinstance(request, ToolDetection) and not is_tool


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _sources(document: Document) -> Iterator[tuple[FieldPath, JsonObject]]:
    """Yield the sources of an Application or of an ApplicationSet template, with their paths."""
    roots: tuple[FieldPath, ...] = (("spec",), ("spec", "template", "spec"))
    for root in roots:
        spec = get_mapping(document.body, *map(str, root))
        if get_mapping(spec, "source"):
            yield (*root, "source"), get_mapping(spec, "source")
        for at, source in enumerate(get_list(spec, "sources")):
            if isinstance(source, dict):
                yield (*root, "sources", at), source


def _argo_objects(context: LintContext) -> Iterator[Document]:
    """Yield the Applications and ApplicationSets in files, each once."""
    seen: set[tuple[str, int, str]] = set()
    from_units = [
        unit_resource
        for name, unit_resource in context.unit_resources.items()
        if name.kind == "Application"
    ]
    deployed = [
        lint_object.document
        for lint_object in context.objects_of_kind(ARGO, "Application", "ApplicationSet")
    ]
    for document in (*from_units, *deployed):
        location = document.location
        key = (location.name, location.line, get_text(document.body, "metadata", "name"))
        if key not in seen:
            seen.add(key)
            yield document


@rule(
    "ORD053",
    "`directory` disables Helm and Kustomize",
    Severity.WARNING,
    why=(
        "a source whose `directory` sets anything is a plain directory for Argo CD, so Argo CD runs"
        " neither Helm nor Kustomize"
    ),
    fix="remove `directory` from the source",
)
def directory_changes_tool(context: LintContext) -> Iterator[Diagnostic]:
    """Yield sources with `directory` whose directory contains a chart or a kustomization.

    Argo CD v3.5.1, pkg/apis/application/v1alpha1/types.go (`ExplicitType`). Where Argo CD erases
    an empty block (util/argo/argo.go, `NormalizeSource`), the unit has no request for it.
    """
    for unit_id, document in context.unit_resources.items():
        unit = context.units.get(unit_id)
        if unit is None or unit_id.kind != "Application":
            continue
        plain_folders = {
            source.path for source in unit.sources if isinstance(source.request, Directory)
        }
        for path, source in _sources(document):
            folder = posixpath.normpath(get_text(source, "path").strip("/") or ".")
            if "directory" not in source or folder not in plain_folders:
                continue
            base = "" if folder == "." else f"{folder}/"
            existing = [name for name in TOOL_FILES if f"{base}{name}" in context.files]
            if existing:
                yield Diagnostic(
                    message=f"`{folder}` contains {existing[0]}, but `directory` makes Argo CD"
                    " read plain files",
                    at=FieldRef(document, (*path, "directory")),
                    semantics=("argocd",),
                )


@rule(
    "ORD054",
    "File pattern has several lines",
    Severity.ERROR,
    why="`include` and `exclude` take one pattern, and a pattern with a line break matches no file",
    fix="use one pattern with alternatives, such as `{apps/*.yaml,infra/*.yaml}`",
)
def multiline_pattern(context: LintContext) -> Iterator[Diagnostic]:
    for document in _argo_objects(context):
        for path, source in _sources(document):
            for key in ("include", "exclude"):
                pattern = get_text(source, "directory", key)
                if "\n" in pattern.strip():
                    yield Diagnostic(
                        message=(
                            f"`directory.{key}` has {len(pattern.split())} patterns on separate"
                            " lines and matches no file"
                        ),
                        at=FieldRef(document, (*path, "directory", key)),
                        semantics=("argocd",),
                    )


@rule(
    "ORD015",
    "RollingSync step is misconfigured",
    Severity.WARNING,
    why=(
        "Argo CD syncs the Applications of an ApplicationSet step by step, and never those that"
        " match no step"
    ),
    fix=("make each Application match exactly one step; use `maxUpdate: 0` only for a manual step"),
)
def rolling_sync(context: LintContext) -> Iterator[Diagnostic]:
    for obj in context.objects_of_kind(ARGO, "ApplicationSet"):
        steps = ("spec", "strategy", "rollingSync", "steps")
        step_list = get_list(obj.body, *steps)
        for at, step in enumerate(step_list[:-1]):
            if get_value(step, "maxUpdate") in {0, "0", "0%"} and isinstance(step, dict):
                yield Diagnostic(
                    message=(
                        f"step {at + 1} of `{obj.ref.name}` has `maxUpdate: 0`; later steps start"
                        " only after its Applications are synced manually"
                    ),
                    at=FieldRef(obj.document, (*steps, at, "maxUpdate")),
                    semantics=("argocd",),
                )
        policy = ("spec", "template", "spec", "syncPolicy")
        if step_list and "automated" in get_mapping(obj.body, *policy):
            yield Diagnostic(
                message=(
                    f"Argo CD ignores `automated` in the template of `{obj.ref.name}`, because"
                    " RollingSync syncs the Applications"
                ),
                at=FieldRef(obj.document, (*policy, "automated")),
                severity=Severity.NOTE,
                semantics=("argocd",),
            )
