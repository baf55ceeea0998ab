"""Walk from an overlay to everything it names, and gather it.

Each kustomization on the way is read, checked and written anew; what it names is gathered, and what
leads out of its tree, or to the network, is refused.
"""

from __future__ import annotations

import posixpath

import msgspec

from tidegate.documents import find_location, read_documents
from tidegate.documents.document import format_path
from tidegate.documents.dump import to_yaml
from tidegate.errors import DocumentError, Location, RenderError, sanitize
from tidegate.files import PathEscapeError, normalize_path, read_regular_file
from tidegate.model.k8s.objects import FieldPath, JsonObject
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.rendering import FetchedTree, FluxOverrides, LoadRestriction, Overlay
from tidegate.render.globs import find_matches, is_pattern
from tidegate.render.inputs import CacheInputs
from tidegate.render.kustomize import kustomization
from tidegate.render.kustomize.kustomization import (
    InflatedChart,
    PathRole,
    parse_inline_objects,
    write_inline_objects,
)
from tidegate.render.kustomize.override import apply_overrides, generate_kustomization
from tidegate.render.kustomize.tree import (
    BuildCopy,
    DecryptableFile,
    FindLocation,
    PathKind,
    ResolvedPath,
    Tree,
    find_kustomization,
    find_manifests,
    is_below,
)

FILES_ONLY = frozenset({PathRole.FILE, PathRole.PATCH})
_ANCHORS = lazy_regex(rb"[:,?\[{-]\s+&[^\s,\]}]")
_ALIASES = lazy_regex(rb"[:,?\[{-]\s*\*[^\s,\]}]")
ENDLESS = frozenset({"documents.alias.loop", "documents.alias.excess"})
"""What Kubernetes refuses, and kustomize writes out until its memory is full."""
TAKEN_AS_TEXT = frozenset({"configmapgenerator", "secretgenerator"})
"""Fields whose files nobody reads as YAML."""
COST_OF_AN_ENTRY = 4096
"""Links can make a small chart endless, so that each name counts as some bytes."""


class OverlayInputs(msgspec.Struct):
    """What has been found so far."""

    overlay: Overlay
    copy: BuildCopy = msgspec.field(default_factory=BuildCopy)
    remote: dict[str, Location] = msgspec.field(default_factory=dict)
    remote_charts: dict[str, InflatedChart] = msgspec.field(default_factory=dict)
    entered: set[str] = msgspec.field(default_factory=set)
    decryptable: dict[str, DecryptableFile] = msgspec.field(default_factory=dict)
    uses_charts: bool = False
    top: str = ""
    body: JsonObject = msgspec.field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Gathering({self.overlay!r})"


class KustomizationVisit(msgspec.Struct, frozen=True):
    """A directory on the way, and the way to it. `plugins_for` uses it as a list of plugins."""

    tree: Tree
    directory: str
    behind: tuple[KustomizationVisit, ...] = ()
    plugins_for: OverlayCollector | None = None


def collect_inputs(overlay: Overlay, looked: CacheInputs | None = None) -> OverlayInputs:
    """Everything that building an overlay reads. What is looked at for it is noted in `looked`."""
    tree = Tree(overlay.root, mount="tree", looked=looked)
    gathering = OverlayInputs(overlay)

    def where() -> Location:
        return Location(overlay.path or ".")

    spot = tree.find(".", overlay.path or ".", where=where)
    if spot.found is not PathKind.DIRECTORY:
        problem = f"there is no directory `{sanitize(overlay.path)}`"
        raise RenderError("render.kustomize.missing", problem, location=where())
    try:
        _enter(gathering, KustomizationVisit(tree, spot.path))
    except RecursionError:
        problem = "the overlay is nested too deep"
        raise RenderError("render.kustomize.size", problem, location=where()) from None
    return gathering


def _enter(gathering: OverlayInputs, step: KustomizationVisit) -> None:
    """Gather one kustomization and all it names."""
    key = step.tree.copied(step.directory)
    if key in gathering.entered and step.plugins_for is None:
        return
    gathering.entered.add(key)
    is_top = not step.behind
    makes = is_top and isinstance(gathering.overlay.overrides, FluxOverrides)
    name = find_kustomization(step.tree, step.directory, may_lack=makes)
    path = posixpath.normpath(posixpath.join(step.directory, name or "kustomization.yaml"))
    walk = OverlayCollector(gathering, step, path)
    if name:
        shown = step.tree.label + path
        body = kustomization.read_kustomization(walk.read_source(), shown, keep_unknown=not makes)
    else:
        body = generate_kustomization(find_manifests(step.tree, step.directory))
    if is_top:
        overrides = gathering.overlay.overrides
        body = apply_overrides(body, overrides, made=not name, nearby=walk)
        gathering.top = step.tree.copied(path)
    if step.plugins_for is not None:
        walk.refuse_more_than_a_list(body)
    mapped = walk.gather(body)
    if is_top:
        gathering.body = mapped


def _refuse_endless(content: bytes, shown: str) -> None:
    """Raise where an alias leads into itself, or aliases of aliases swell."""
    if _ANCHORS.search(content) and _ALIASES.search(content):
        try:
            read_documents(content, shown)
        except DocumentError as error:
            if error.code in ENDLESS:
                raise


class OverlayCollector:
    """One kustomization while it is gathered."""

    def __init__(self, gathering: OverlayInputs, step: KustomizationVisit, path: str) -> None:
        self.gathering = gathering
        self.step = step
        self.tree = step.tree
        self.directory = step.directory
        self.path = path

    def read_source(self) -> bytes:
        spot = self.tree.find(self.directory, posixpath.basename(self.path), where=self.where(()))
        self._refuse_restricted(spot.path, posixpath.basename(self.path), ())
        return self.gathering.copy.read(self.tree, spot.path, self.where(()))

    def gather(self, body: JsonObject) -> JsonObject:
        mapped = kustomization.map_paths(body, self.visit)
        shared = mapped.get("helmGlobals")
        if isinstance(shared, dict):
            # Where helm keeps its own files is nothing a repository may say.
            mapped["helmGlobals"] = {
                key: value for key, value in shared.items() if key.casefold() != "confighome"
            }
        for number, chart in enumerate(kustomization.list_charts(body)):
            self._take_chart(chart, ("helmCharts", number))
        self._note_decryptable(mapped)
        self.gathering.copy.files[self.tree.copied(self.path)] = to_yaml(mapped).encode()
        return mapped

    def _note_decryptable(self, body: JsonObject) -> None:
        for use, name, text in kustomization.decryptable_paths(body):
            if kustomization.is_remote_file(text):
                continue
            path = self.tree.find(self.directory, text, where=self.where(())).path
            copied = self.tree.copied(path)
            content = self.gathering.copy.files.get(copied)
            if content is not None:
                shown = self.tree.label + path
                found = DecryptableFile(path=shown, name=name, use=use, content=content)
                self.gathering.decryptable.setdefault(copied, found)

    def visit(self, role: PathRole, text: str, at: FieldPath) -> str:
        """Gather what a path names; say how it is to be written in the copy."""
        if role in {PathRole.PATCH, PathRole.PLUGIN}:
            bodies = parse_inline_objects(text)
            if bodies:
                return write_inline_objects(
                    bodies if role is PathRole.PATCH else self.map_plugins(bodies)
                )
        goes_out = kustomization.is_remote_file if role in FILES_ONLY else kustomization.is_remote
        if goes_out(text):
            return self._take_remote(role, text, at)
        spot = self.tree.find(self.directory, text, where=self.where(at))
        self.gathering.copy.link(self.tree, spot)
        self._take_spot(role, spot, text, at)
        return text

    def _take_spot(self, role: PathRole, spot: ResolvedPath, text: str, at: FieldPath) -> None:
        if spot.found is PathKind.DIRECTORY and role not in FILES_ONLY:
            self._enter(KustomizationVisit(self.tree, spot.path), role, at)
        elif spot.found is PathKind.FILE and role is not PathRole.COMPONENT:
            self._take_file(role, spot.path, text, at)
        else:
            raise self._missing(role, spot, text, at)

    def _take_file(self, role: PathRole, path: str, text: str, at: FieldPath) -> None:
        self._refuse_restricted(path, text, at)
        content = self.gathering.copy.take(self.tree, path, self.where(at))
        if str(at[0]).lower() not in TAKEN_AS_TEXT:
            _refuse_endless(content, self.tree.label + path)
        user = self if role is PathRole.PLUGIN else self.step.plugins_for
        if user is not None:
            bodies = user.map_plugins(parse_inline_objects(content))
            if bodies:
                self.gathering.copy.files[self.tree.copied(path)] = write_inline_objects(
                    bodies
                ).encode()

    def _refuse_restricted(self, path: str, text: str, at: FieldPath) -> None:
        own_only = self.gathering.overlay.restriction is LoadRestriction.ROOT_ONLY
        if (own_only or self.tree.label) and not is_below(path, self.directory):
            problem = f"the file `{sanitize(text)}` is outside the directory of its kustomization"
            hint = "move it there, or give it a kustomization of its own and name its directory"
            where = self.where(at)()
            raise RenderError("render.kustomize.restricted", problem, location=where, hint=hint)

    def map_plugins(self, bodies: list[JsonObject]) -> list[JsonObject]:
        for body in bodies:
            if body.get("kind") == "HelmChartInflationGenerator":
                self._take_chart(kustomization.read_chart_entry(body, ""), ("generators",))
        return [kustomization.map_plugin_paths(body, self.visit) for body in bodies]

    def _take_remote(self, role: PathRole, text: str, at: FieldPath) -> str:
        fetched = self.gathering.overlay.fetched.get(text)
        if fetched is None:
            self.gathering.remote.setdefault(text, self.where(at)())
            return text
        number = list(self.gathering.overlay.fetched).index(text)
        tree = self._other_tree(fetched, f"fetched/{number}", text)
        spot = tree.find(".", fetched.path, where=self.where(at))
        here = self.tree.copied(self.directory)
        if spot.found is PathKind.FILE:
            name = f".fetched-{number}.yaml"
            copy = self.gathering.copy
            copy.files[f"{here}/{name}"] = copy.read(tree, spot.path, self.where(at))
            return name
        if spot.found is not PathKind.DIRECTORY or role is PathRole.FILE:
            raise self._missing(role, spot, text, at)
        self._enter(KustomizationVisit(tree, spot.path), role, at)
        return posixpath.relpath(tree.copied(spot.path), here)

    def _other_tree(self, fetched: FetchedTree, mount: str, text: str) -> Tree:
        label = f"{sanitize(text)}: "
        return Tree(fetched.root, mount=mount, label=label, looked=self.tree.looked)

    def _enter(self, step: KustomizationVisit, role: PathRole, at: FieldPath) -> None:
        behind = (*self.step.behind, self.step)
        for earlier in behind:
            same = earlier.tree.mount == step.tree.mount
            if same and is_below(earlier.directory, step.directory):
                problem = f"`{step.directory}` is, or contains, a directory that names it"
                hint = "move what both need into a directory beside them"
                where = self.where(at)()
                raise RenderError("render.kustomize.cycle", problem, location=where, hint=hint)
        user = self if role is PathRole.PLUGIN else self.step.plugins_for
        _enter(self.gathering, KustomizationVisit(step.tree, step.directory, behind, user))

    def _take_chart(self, chart: InflatedChart, at: FieldPath) -> None:
        self.gathering.uses_charts = True
        spot = self.tree.find(self.directory, chart.directory, where=self.where(at))
        if spot.found is PathKind.DIRECTORY:
            self.gathering.copy.link(self.tree, spot)
            self._take_all(self.tree, spot.path, self.tree.copied(spot.path), at)
            return
        fetched = self.gathering.overlay.fetched.get(chart.reference)
        if fetched is not None:
            tree = self._other_tree(fetched, "", chart.reference)
            start = tree.find(".", fetched.path, where=self.where(at))
            self._take_all(tree, start.path, self.tree.copied(spot.path), at)
        elif chart.repository:
            self.gathering.remote.setdefault(chart.reference, self.where(at)())
            self.gathering.remote_charts[chart.reference] = chart
        else:
            problem = f"there is no chart at `{sanitize(chart.directory)}`, and no `repo` to get it"
            raise RenderError("render.kustomize.missing", problem, location=self.where(at)())

    def _take_all(self, tree: Tree, directory: str, target: str, at: FieldPath) -> None:
        """A whole directory. Links in it become what they lead to."""
        copy = self.gathering.copy
        for name, _ in tree.names(directory):
            copy.spend(COST_OF_AN_ENTRY, self.where(at))
            spot = tree.find(directory, name, where=self.where(at))
            if spot.found is PathKind.DIRECTORY and is_below(directory, spot.path):
                continue
            if spot.found is PathKind.DIRECTORY:
                self._take_all(tree, spot.path, f"{target}/{name}", at)
            elif spot.found is PathKind.FILE:
                copy.files[f"{target}/{name}"] = copy.read(tree, spot.path, self.where(at))

    def exists(self, text: str) -> bool:
        spot = self.tree.find(self.directory, text, where=self.where(("components",)))
        return spot.found is not PathKind.NOTHING

    def exists_below(self, text: str) -> bool:
        below = posixpath.normpath(f"/{text}").lstrip("/")
        return self.exists(below or ".")

    def matching(self, pattern: str) -> list[str]:
        if not is_pattern(pattern) or kustomization.is_remote(pattern):
            return []
        self.tree.looked.is_complete = False  # it looks into directories by itself
        try:
            found = find_matches(self.tree.root, normalize_path(pattern, self.directory))
        except PathEscapeError:
            return []
        except ValueError as error:
            problem = f"`{sanitize(pattern)}` is no pattern: {error}"
            where = self.where(("components",))()
            raise RenderError("render.kustomize.component", problem, location=where) from None
        return [posixpath.relpath(path, self.directory) for path in found]

    def refuse_more_than_a_list(self, body: JsonObject) -> None:
        more = sorted(set(body) - kustomization.KEYS_OF_A_PLAIN_LIST)
        if more:
            problem = f"a directory of transformers or generators may not use `{more[0]}`"
            hint = "write the configurations as they are, and name their files"
            where = self.where((more[0],))()
            raise RenderError("render.kustomize.plugin", problem, location=where, hint=hint)

    def _missing(self, role: PathRole, spot: ResolvedPath, text: str, at: FieldPath) -> RenderError:
        found = "it is not there" if spot.found is PathKind.NOTHING else f"it is {spot.found.value}"
        problem = f"`{sanitize(text)}` should be {role.value}, and {found}"
        return RenderError("render.kustomize.missing", problem, location=self.where(at)())

    def where(self, at: FieldPath) -> FindLocation:
        def find() -> Location:
            name = self.tree.label + self.path
            try:
                source = read_regular_file(self.tree.root / self.path)
                documents = read_documents(source, name)
                place = find_location(source, documents[0], at) if documents else Location(name)
            except (OSError, DocumentError):
                place = Location(name)
            return place.with_field(format_path(at))

        return find
