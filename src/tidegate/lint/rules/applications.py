"""Applications and sets of them: children that order nothing, sources that mean something else."""

from __future__ import annotations

from collections.abc import Iterator

from tidegate.documents import Document, FieldPath
from tidegate.lint.rule import Mark, RuleRemark, rule
from tidegate.lint.rules.inert import WAVE
from tidegate.lint.scene import Actor, Body, LintScene
from tidegate.lint.words import some
from tidegate.model.finding import Severity
from tidegate.model.policy import Order
from tidegate.model.reading import listed, mapping, mappings, part, text
from tidegate.model.semantics import ChildGates
from tidegate.model.unit import UnitId

ARGO = "argoproj.io"
HEALTH = "resource.customizations.health.argoproj.io_Application"
OLD_HEALTH = "resource.customizations"
MOVING = ("", "HEAD", "main", "master", "develop", "trunk")
LUA = """resource.customizations.health.argoproj.io_Application: |
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


def children_of(scene: LintScene) -> dict[UnitId, list[Actor]]:
    """By parent, the Applications that it brings, where waves order them."""
    found: dict[UnitId, list[Actor]] = {}
    for actor in scene.of_kind(ARGO, "Application"):
        if actor.unit.policy.order is Order.WAVES:
            found.setdefault(actor.unit.id, []).append(actor)
    return found


def _later(children: list[Actor]) -> list[Actor]:
    """Those that are not in the first wave, where there are several."""
    first = min(one.manifest.wave for one in children)
    return [one for one in children if one.manifest.wave > first]


@rule(
    "ORD011",
    "The waves of child Applications do not wait",
    Severity.WARNING,
    why="Argo CD has no health check for Applications of its own since 1.8: a child counts as"
    " healthy as soon as its object is there",
    fix="add a health check for Application to argocd-cm",
)
def children_without_health(scene: LintScene) -> Iterator[RuleRemark]:
    script = str(scene.settings[HEALTH].value) if HEALTH in scene.settings else ""
    old = scene.settings.get(OLD_HEALTH)
    if old is not None and "argoproj.io/Application" in str(old.value):
        script = script or str(old.value)
    for parent, children in children_of(scene).items():
        later = _later(children)
        if not later or (scene.units[parent].policy.semantics.name == "tidegate" and parent.kind):
            continue
        if not parent.kind:
            yield _nobody(parent, later)
        elif not script and scene.units[parent].policy.semantics.children is ChildGates.NEVER:
            yield _unchecked(scene, parent, children, later)
        elif script and "sync" not in script and "operationState" not in script:
            yield _unguarded(scene, parent, later)


def _nobody(parent: UnitId, later: list[Actor]) -> RuleRemark:
    return RuleRemark(
        sentence=f"the waves of {len(later)} Applications in `{parent.name}` are read by nobody:"
        " no Application applies their directory",
        at=Mark(later[0].document, ("metadata", "annotations", WAVE)),
        why="a wave counts in the sync of the Application that brings the object; each of these is"
        " applied by somebody else, all at once",
        fix="let one Application apply this directory (app of apps), and give it a health check"
        " for Application",
        semantics=("argocd",),
    )


def _unchecked(
    scene: LintScene, parent: UnitId, children: list[Actor], later: list[Actor]
) -> RuleRemark:
    waves = sorted({one.manifest.wave for one in children})
    first = [one.ref.name for one in children if one.manifest.wave == waves[0]]
    next_ones = [one.ref.name for one in children if one.manifest.wave == waves[1]]
    return RuleRemark(
        sentence=f"the waves of `{parent}` order {len(children)} Applications and wait for none:"
        " there is no health check for Application",
        at=Mark(later[0].document, ("metadata", "annotations", WAVE)),
        story=(
            f"wave {waves[0]} of `{parent}` creates {some(first)}",
            (
                "Argo CD has no health check for Application, so that each passes as soon as it is"
                " there"
            ),
            (
                f"2 s later wave {waves[1]} creates {some(next_ones)}, while nothing of the first"
                " is deployed yet"
            ),
        ),
        paste=LUA,
        severity=Severity.WARNING,
        semantics=("argocd",),
        fix="add this to the data of the ConfigMap argocd-cm"
        + ("" if scene.settings else "; it is not in this repository, so that it may be there"),
    )


def _unguarded(scene: LintScene, parent: UnitId, later: list[Actor]) -> RuleRemark:
    return RuleRemark(
        sentence=f"the health check for Application lets waves of `{parent}` pass on old health",
        at=scene.settings[HEALTH].where
        if HEALTH in scene.settings
        else Mark(later[0].document, ("metadata", "annotations", WAVE)),
        severity=Severity.NOTE,
        why="it does not ask whether the child is synced: right after a change a child still shows"
        " the health of the revision before",
        fix="ask for `status.sync` and `status.operationState` as well",
        paste=LUA,
        semantics=("argocd",),
    )


@rule(
    "ORD057",
    "What is behind a set does not wait for its Applications",
    Severity.WARNING,
    why="Argo CD takes a set for healthy when it has generated its Applications; how these are, it"
    " asks only of a set with RollingSync",
    fix="let a RollingSync order the set, or put what has to wait into the same set, in a later"
    " step",
)
def set_in_a_wave(scene: LintScene) -> Iterator[RuleRemark]:
    for one in scene.of_kind(ARGO, "ApplicationSet"):
        unit = one.unit
        rules = unit.policy.semantics.name
        if unit.policy.order is not Order.WAVES or rules == "tidegate":
            continue
        if text(one.body, "spec", "strategy", "type") == "RollingSync":
            continue
        behind = [
            other
            for other in (*children_of(scene).get(unit.id, ()), *_sets_of(scene, unit.id))
            if other.manifest.wave > one.manifest.wave
        ]
        if behind:
            yield _passes_at_once(one, behind, rules)


def _sets_of(scene: LintScene, parent: UnitId) -> list[Actor]:
    return [one for one in scene.of_kind(ARGO, "ApplicationSet") if one.unit.id == parent]


def _passes_at_once(one: Actor, behind: list[Actor], rules: str) -> RuleRemark:
    wave, after = one.manifest.wave, min(behind, key=lambda other: other.manifest.wave)
    return RuleRemark(
        sentence=f"wave {after.manifest.wave} of `{one.unit.id}` does not wait for the Applications"
        f" of the set `{one.ref.name}` in wave {wave}",
        at=Mark(one.document, ("metadata", "annotations", WAVE)),
        also=(Mark(after.document),),
        story=(
            f"wave {wave} of `{one.unit.id}` applies the set `{one.ref.name}`",
            "its Applications are generated, and the set is healthy from then on",
            (
                f"2 s later wave {after.manifest.wave} applies {after.ref.kind.name}"
                f" `{after.ref.name}`, while nothing of these Applications is deployed yet"
            ),
        ),
        semantics=(rules,),
    )


@rule(
    "ORD012",
    "Children follow the same branch as who orders them",
    Severity.NOTE,
    why="each child notices a commit by itself: waves order only changes of the Applications"
    " themselves, and not what lies in their directories",
    fix="pin `targetRevision` of the children, so that a release goes through the parent",
)
def children_on_same_branch(scene: LintScene) -> Iterator[RuleRemark]:
    for parent, children in children_of(scene).items():
        own = scene.unit_objects.get(parent)
        later = _later(children)
        if own is None or not later:
            continue
        theirs = set(_tips(own.body))
        alike = [
            one
            for one in later
            if "automated" in mapping(one.body, "spec", "syncPolicy")
            and theirs & set(_tips(one.body))
        ]
        if alike:
            yield RuleRemark(
                sentence=f"{len(alike)} ordered Applications of `{parent}` follow the same branch"
                " as it does, and sync by themselves",
                at=Mark(alike[0].document, ("spec", _sources_of(alike[0].body))),
                semantics=("argocd",),
            )


def _sources_of(body: Body) -> str:
    """Where an Application says what it deploys."""
    return "sources" if mappings(body, "spec", "sources") else "source"


def _tips(body: Body) -> Iterator[tuple[str, str]]:
    """The branches that an Application follows; what is no fixed revision is one."""
    spec = mapping(body, "spec")
    for one in (mapping(spec, "source"), *mappings(spec, "sources")):
        revision = text(one, "targetRevision")
        if text(one, "repoURL") and not text(one, "chart") and revision in MOVING:
            yield text(one, "repoURL").removesuffix(".git"), revision or "HEAD"


@rule(
    "ORD048",
    "Nobody brings an Application",
    Severity.WARNING,
    why="it lies beside Applications that a parent applies, and its own file is left out",
    fix="let the parent take it in (`directory.recurse`, `include`, the list of an overlay),"
    " or move it elsewhere",
)
def unreached_application(scene: LintScene) -> Iterator[RuleRemark]:
    folders: dict[str, list[UnitId]] = {}
    for name, unit in scene.units.items():
        if name.kind == "Application" and unit.where and unit.parent and unit.parent.kind:
            folders.setdefault(_folder(unit.where.name), []).append(unit.parent)
    bringing = {one.parent for one in scene.units.values()}
    for name, unit in scene.units.items():
        if name.kind != "Application" or unit.parent is not None or unit.where is None:
            continue
        parents = folders.get(_folder(unit.where.name), [])
        if parents and name not in bringing:
            own = scene.unit_objects.get(name)
            yield RuleRemark(
                sentence=f"`{name}` is brought by nobody, beside what `{parents[0]}` brings",
                at=Mark(own) if own is not None else unit.where,
                semantics=("argocd",),
            )


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _sources(document: Document) -> Iterator[tuple[FieldPath, Body]]:
    """The sources of an Application, or of a set's template, with their paths."""
    roots: tuple[FieldPath, ...] = (("spec",), ("spec", "template", "spec"))
    for root in roots:
        spec = mapping(document.body, *map(str, root))
        if mapping(spec, "source"):
            yield (*root, "source"), mapping(spec, "source")
        for at, one in enumerate(listed(spec, "sources")):
            if isinstance(one, dict):
                yield (*root, "sources", at), one


def _argo_objects(scene: LintScene) -> Iterator[Document]:
    """Applications and sets as they stand in files, each once."""
    seen: set[tuple[str, int, str]] = set()
    own = [one for name, one in scene.unit_objects.items() if name.kind == "Application"]
    brought = [one.document for one in scene.of_kind(ARGO, "Application", "ApplicationSet")]
    for document in (*own, *brought):
        place = document.place
        key = (place.name, place.line, text(document.body, "metadata", "name"))
        if key not in seen:
            seen.add(key)
            yield document


@rule(
    "ORD053",
    "An empty `directory` turns a chart or an overlay into plain files",
    Severity.WARNING,
    why="whoever writes `directory` chooses the tool, also with nothing in it: neither Helm nor"
    " Kustomize is run then",
    fix="remove `directory`",
)
def directory_changes_tool(scene: LintScene) -> Iterator[RuleRemark]:
    for document in _argo_objects(scene):
        for path, source in _sources(document):
            folder = text(source, "path").strip("/").removeprefix("./")
            chosen = part(source, "directory")
            if not isinstance(chosen, dict) or any(key in source for key in ("helm", "kustomize")):
                continue
            base = "" if folder in {"", "."} else f"{folder}/"
            marks = ("Chart.yaml", "kustomization.yaml", "kustomization.yml", "Kustomization")
            there = [one for one in marks if f"{base}{one}" in scene.files]
            if there:
                yield RuleRemark(
                    sentence=f"`{folder or '.'}` has a {there[0]}, and is read as plain files",
                    at=Mark(document, (*path, "directory")),
                    semantics=("argocd",),
                )


@rule(
    "ORD054",
    "A pattern of files has several lines",
    Severity.ERROR,
    why="a pattern is one text: with a line break in it, it fits no file",
    fix="write one pattern with alternatives, such as `{apps/*.yaml,infra/*.yaml}`",
)
def pattern_of_lines(scene: LintScene) -> Iterator[RuleRemark]:
    for document in _argo_objects(scene):
        for path, source in _sources(document):
            for key in ("include", "exclude"):
                said = text(source, "directory", key)
                if "\n" in said.strip():
                    yield RuleRemark(
                        sentence=f"`directory.{key}` has {len(said.split())} patterns in one text,"
                        " which fits nothing",
                        at=Mark(document, (*path, "directory", key)),
                        semantics=("argocd",),
                    )


@rule(
    "ORD015",
    "A step of a RollingSync does not do what it seems to",
    Severity.WARNING,
    why="Applications of a set are synced step by step, and those in no step never",
    fix="give each Application exactly one step; `maxUpdate: 0` waits for somebody by hand",
)
def rolling_sync(scene: LintScene) -> Iterator[RuleRemark]:
    for actor in scene.of_kind(ARGO, "ApplicationSet"):
        steps = ("spec", "strategy", "rollingSync", "steps")
        found = listed(actor.body, *steps)
        for at, one in enumerate(found[:-1]):
            if part(one, "maxUpdate") in {0, "0", "0%"} and isinstance(one, dict):
                yield RuleRemark(
                    sentence=f"step {at + 1} of `{actor.ref.name}` has `maxUpdate: 0`:"
                    " no later step begins before somebody syncs its Applications by hand",
                    at=Mark(actor.document, (*steps, at, "maxUpdate")),
                    semantics=("argocd",),
                )
        policy = ("spec", "template", "spec", "syncPolicy")
        if found and "automated" in mapping(actor.body, *policy):
            yield RuleRemark(
                sentence=f"`automated` in the template of `{actor.ref.name}` is ignored:"
                " its steps sync the Applications",
                at=Mark(actor.document, (*policy, "automated")),
                severity=Severity.NOTE,
                semantics=("argocd",),
            )
