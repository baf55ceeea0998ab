"""Collection of everything that an overlay names.

Each kustomization on the way is read, checked and written anew. References that lead out of the
tree, or to the network, are rejected.
"""

from __future__ import annotations

import posixpath

import msgspec

from tidegate.documents import find_location, read_documents
from tidegate.documents.document import format_path
from tidegate.documents.dump import to_yaml
from tidegate.errors import DocumentError, Location, RenderError, sanitize
from tidegate.files import PathEscapeError, normalize_path, read_regular_file
from tidegate.model.k8s.json_fields import get_list, get_mapping
from tidegate.model.k8s.objects import FieldPath, Json, JsonObject
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
ALIAS_ERRORS = frozenset({"documents.alias.loop", "documents.alias.excess"})
"""Errors of Kubernetes; kustomize would expand such aliases until its memory is full."""
TEXT_FIELDS = frozenset({"configmapgenerator", "secretgenerator"})
"""Fields whose files are not read as YAML."""
BUILTIN_PLUGINS = "builtin"
"""The `apiVersion` of the plugins that are part of kustomize; it executes all others."""
BEHAVIOR_ANNOTATION = "kustomize.config.k8s.io/behavior"
ENTRY_COST = 4096
"""Bytes that each name counts: links can make a small chart endless."""


class OverlayInputs(msgspec.Struct):
    """All inputs of an overlay that were collected so far."""

    overlay: Overlay
    """The overlay."""
    copy: BuildCopy = msgspec.field(default_factory=BuildCopy)
    """Files for the build."""
    missing_remotes: dict[str, Location] = msgspec.field(default_factory=dict)
    """Remote references that must be fetched first, with their locations."""
    remote_charts: dict[str, InflatedChart] = msgspec.field(default_factory=dict)
    """Charts that must be fetched first, by reference."""
    visited: set[str] = msgspec.field(default_factory=set)
    """Directories that were collected already, by their path in the copy."""
    decryptable: dict[str, DecryptableFile] = msgspec.field(default_factory=dict)
    """Files that may be encrypted, by their path in the copy."""
    uses_charts: bool = False
    """Whether a kustomization inflates charts."""
    top_file: str = ""
    """Path of the overlay's own kustomization in the copy."""
    body: JsonObject = msgspec.field(default_factory=dict)
    """The overlay's own kustomization."""

    def __repr__(self) -> str:
        return f"OverlayInputs({self.overlay!r})"


class KustomizationVisit(msgspec.Struct, frozen=True):
    """A directory with a kustomization, and the way to it."""

    tree: Tree
    """The tree of the directory."""
    directory: str
    """The path of the directory in the tree."""
    ancestors: tuple[KustomizationVisit, ...] = ()
    """The kustomizations on the way to the directory."""
    plugin_user: OverlayCollector | None = None
    """The collector that uses the directory as a list of plugins."""


def collect_inputs(overlay: Overlay, cache_inputs: CacheInputs | None = None) -> OverlayInputs:
    """Return everything that building an overlay reads. Paths are recorded in `cache_inputs`."""
    tree = Tree(overlay.root, mount="tree", cache_inputs=cache_inputs)
    inputs = OverlayInputs(overlay)

    def find_location() -> Location:
        return Location(overlay.path or ".")

    resolved = tree.find(".", overlay.path or ".", find_location=find_location)
    if resolved.kind is not PathKind.DIRECTORY:
        problem = f"directory `{sanitize(overlay.path)}` not found"
        raise RenderError("render.kustomize.missing", problem, location=find_location())
    try:
        _collect_directory(inputs, KustomizationVisit(tree, resolved.path))
    except RecursionError:
        problem = "the overlay is nested too deep"
        raise RenderError("render.kustomize.size", problem, location=find_location()) from None
    return inputs


def _collect_directory(inputs: OverlayInputs, current: KustomizationVisit) -> None:
    """Collect a kustomization and everything that it names."""
    key = current.tree.path_in_copy(current.directory)
    if key in inputs.visited and current.plugin_user is None:
        return
    inputs.visited.add(key)
    is_top = not current.ancestors
    may_generate = is_top and isinstance(inputs.overlay.overrides, FluxOverrides)
    name = find_kustomization(current.tree, current.directory, may_lack=may_generate)
    path = posixpath.normpath(posixpath.join(current.directory, name or "kustomization.yaml"))
    collector = OverlayCollector(inputs, current, path)
    if name:
        display_name = current.tree.label + path
        body = kustomization.read_kustomization(
            collector.read_source(), display_name, keep_unknown=not may_generate
        )
    else:
        body = generate_kustomization(find_manifests(current.tree, current.directory))
    if is_top:
        overrides = inputs.overlay.overrides
        body = apply_overrides(body, overrides, is_generated=not name, directory=collector)
        inputs.top_file = current.tree.path_in_copy(path)
    if current.plugin_user is not None:
        collector.require_plain_list(body)
    mapped_body = collector.collect(body)
    if is_top:
        inputs.body = mapped_body


def _check_aliases(content: bytes, display_name: str) -> None:
    """Raise DocumentError for YAML aliases that refer to themselves or grow exponentially."""
    if _ANCHORS.search(content) and _ALIASES.search(content):
        try:
            read_documents(content, display_name)
        except DocumentError as error:
            if error.code in ALIAS_ERRORS:
                raise


def _changes_another(body: JsonObject) -> bool:
    """Return whether a generated object is merged into another one, or replaces it."""
    annotations = get_mapping(body, "metadata", "annotations")
    return annotations.get(BEHAVIOR_ANNOTATION) in {"merge", "replace"}


class OverlayCollector:
    """A collector for one kustomization."""

    def __init__(self, inputs: OverlayInputs, current: KustomizationVisit, path: str) -> None:
        self.inputs = inputs
        self.current = current
        self.tree = current.tree
        self.directory = current.directory
        self.path = path

    def read_source(self) -> bytes:
        """Return the text of the kustomization."""
        resolved = self.tree.find(
            self.directory, posixpath.basename(self.path), find_location=self.location_finder(())
        )
        self._check_restriction(resolved.path, posixpath.basename(self.path), ())
        return self.inputs.copy.read(self.tree, resolved.path, self.location_finder(()))

    def collect(self, body: JsonObject) -> JsonObject:
        """Collect what a kustomization names; return it with the paths of the copy."""
        body = self._with_ksops_files(body)
        mapped = kustomization.map_paths(body, self.visit)
        helm_globals = mapped.get("helmGlobals")
        if isinstance(helm_globals, dict):
            # A repository must not set the directory of helm's own files.
            mapped["helmGlobals"] = {
                key: value for key, value in helm_globals.items() if key.casefold() != "confighome"
            }
        for number, chart in enumerate(kustomization.list_charts(body)):
            self._add_chart(chart, ("helmCharts", number))
        self._add_decryptable(mapped)
        self.inputs.copy.files[self.tree.path_in_copy(self.path)] = to_yaml(mapped).encode()
        return mapped

    def _with_ksops_files(self, body: JsonObject) -> JsonObject:
        """Return a kustomization whose KSOPS generators are replaced by the files they decrypt.

        KSOPS runs in the directory of the kustomization, and adds the decrypted objects of its
        files: `ksops.go` of KSOPS 4.3. Objects that replace others become patches.
        """
        generators, resources, patches = list[Json](), list[Json](), list[Json]()
        for number, entry in enumerate(get_list(body, "generators")):
            field_path = ("generators", number)
            files = self._ksops_files(entry, field_path)
            generators += [] if files else [entry]
            for file in files:
                is_patch = any(map(_changes_another, self._read_objects(file, field_path)))
                patches += [{"path": file}] if is_patch else []
                resources += [] if is_patch else [file]
        if not (resources or patches):
            return body
        added = {"resources": resources, "patches": patches}
        lists = {key: [*get_list(body, key), *items] for key, items in added.items() if items}
        return {**body, "generators": generators, **lists}

    def _ksops_files(self, entry: Json, field_path: FieldPath) -> list[str]:
        """Return the files of a KSOPS generator; none if an entry is something else."""
        if not isinstance(entry, str):
            return []
        bodies = parse_inline_objects(entry) or self._read_objects(entry, field_path)
        files = [file for body in bodies for file in get_list(body, "files")]
        is_ksops = all(body.get("kind") == "ksops" and "secretFrom" not in body for body in bodies)
        return [file for file in files if isinstance(file, str)] if is_ksops else []

    def _read_objects(self, text: str, field_path: FieldPath) -> list[JsonObject]:
        """Return the objects of a local file; none of anything else."""
        if kustomization.is_remote(text):
            return []
        find_location = self.location_finder(field_path)
        resolved = self.tree.find(self.directory, text, find_location=find_location)
        if resolved.kind is not PathKind.FILE:
            return []
        return parse_inline_objects(self.inputs.copy.read(self.tree, resolved.path, find_location))

    def _add_decryptable(self, body: JsonObject) -> None:
        """Add the files that Flux may decrypt."""
        for use, name, text in kustomization.decryptable_paths(body):
            if kustomization.is_remote_file(text):
                continue
            path = self.tree.find(self.directory, text, find_location=self.location_finder(())).path
            copy_path = self.tree.path_in_copy(path)
            content = self.inputs.copy.files.get(copy_path)
            if content is not None:
                display_name = self.tree.label + path
                file = DecryptableFile(path=display_name, name=name, use=use, content=content)
                self.inputs.decryptable.setdefault(copy_path, file)

    def visit(self, role: PathRole, text: str, field_path: FieldPath) -> str:
        """Collect what a path names; return the path to write in the copy."""
        if role in {PathRole.PATCH, PathRole.PLUGIN}:
            bodies = parse_inline_objects(text)
            if bodies:
                return write_inline_objects(
                    bodies if role is PathRole.PATCH else self.map_plugins(bodies)
                )
        is_remote = kustomization.is_remote_file if role in FILES_ONLY else kustomization.is_remote
        if is_remote(text):
            return self._add_remote(role, text, field_path)
        resolved = self.tree.find(
            self.directory, text, find_location=self.location_finder(field_path)
        )
        self.inputs.copy.add_links(self.tree, resolved)
        self._add_path(role, resolved, text, field_path)
        return text

    def _add_path(
        self, role: PathRole, resolved: ResolvedPath, text: str, field_path: FieldPath
    ) -> None:
        if resolved.kind is PathKind.DIRECTORY and role not in FILES_ONLY:
            self._enter_directory(KustomizationVisit(self.tree, resolved.path), role, field_path)
        elif resolved.kind is PathKind.FILE and role is not PathRole.COMPONENT:
            self._add_file(role, resolved.path, text, field_path)
        else:
            raise self._missing_error(role, resolved, text, field_path)

    def _add_file(self, role: PathRole, path: str, text: str, field_path: FieldPath) -> None:
        self._check_restriction(path, text, field_path)
        content = self.inputs.copy.add(self.tree, path, self.location_finder(field_path))
        if str(field_path[0]).lower() not in TEXT_FIELDS:
            _check_aliases(content, self.tree.label + path)
        plugin_user = self if role is PathRole.PLUGIN else self.current.plugin_user
        if plugin_user is not None:
            bodies = plugin_user.map_plugins(parse_inline_objects(content))
            if bodies:
                self.inputs.copy.files[self.tree.path_in_copy(path)] = write_inline_objects(
                    bodies
                ).encode()

    def _check_restriction(self, path: str, text: str, field_path: FieldPath) -> None:
        is_root_only = self.inputs.overlay.restriction is LoadRestriction.ROOT_ONLY
        if (is_root_only or self.tree.label) and not is_below(path, self.directory):
            problem = f"the file `{sanitize(text)}` is outside the directory of its kustomization"
            hint = (
                "move the file there, or give it its own kustomization and reference that directory"
            )
            location = self.location_finder(field_path)()
            raise RenderError("render.kustomize.restricted", problem, location=location, hint=hint)

    def map_plugins(self, bodies: list[JsonObject]) -> list[JsonObject]:
        """Collect what plugin configurations name; return them with the paths of the copy."""
        for body in bodies:
            kind = str(body.get("kind"))
            if body.get("apiVersion") != BUILTIN_PLUGINS:
                problem = f"cannot run the kustomize plugin `{sanitize(kind)}`"
                location = self.location_finder(())()
                raise RenderError("render.plugin", problem, location=location)
            if kind == "HelmChartInflationGenerator":
                self._add_chart(kustomization.read_chart_entry(body, ""), ("generators",))
        return [kustomization.map_plugin_paths(body, self.visit) for body in bodies]

    def _add_remote(self, role: PathRole, text: str, field_path: FieldPath) -> str:
        fetched = self.inputs.overlay.fetched.get(text)
        if fetched is None:
            self.inputs.missing_remotes.setdefault(text, self.location_finder(field_path)())
            return text
        number = list(self.inputs.overlay.fetched).index(text)
        tree = self._other_tree(fetched, f"fetched/{number}", text)
        resolved = tree.find(".", fetched.path, find_location=self.location_finder(field_path))
        copy_directory = self.tree.path_in_copy(self.directory)
        if resolved.kind is PathKind.FILE:
            name = f".fetched-{number}.yaml"
            copy = self.inputs.copy
            copy.files[f"{copy_directory}/{name}"] = copy.read(
                tree, resolved.path, self.location_finder(field_path)
            )
            return name
        if resolved.kind is not PathKind.DIRECTORY or role is PathRole.FILE:
            raise self._missing_error(role, resolved, text, field_path)
        self._enter_directory(KustomizationVisit(tree, resolved.path), role, field_path)
        return posixpath.relpath(tree.path_in_copy(resolved.path), copy_directory)

    def _other_tree(self, fetched: FetchedTree, mount: str, text: str) -> Tree:
        label = f"{sanitize(text)}: "
        return Tree(fetched.root, mount=mount, label=label, cache_inputs=self.tree.cache_inputs)

    def _enter_directory(
        self, visit: KustomizationVisit, role: PathRole, field_path: FieldPath
    ) -> None:
        ancestors = (*self.current.ancestors, self.current)
        for ancestor in ancestors:
            is_same_tree = ancestor.tree.mount == visit.tree.mount
            if is_same_tree and is_below(ancestor.directory, visit.directory):
                problem = f"`{visit.directory}` includes itself"
                hint = "move the shared files to a separate directory"
                location = self.location_finder(field_path)()
                raise RenderError("render.kustomize.cycle", problem, location=location, hint=hint)
        plugin_user = self if role is PathRole.PLUGIN else self.current.plugin_user
        _collect_directory(
            self.inputs, KustomizationVisit(visit.tree, visit.directory, ancestors, plugin_user)
        )

    def _add_chart(self, chart: InflatedChart, field_path: FieldPath) -> None:
        self.inputs.uses_charts = True
        resolved = self.tree.find(
            self.directory, chart.directory, find_location=self.location_finder(field_path)
        )
        if resolved.kind is PathKind.DIRECTORY:
            self.inputs.copy.add_links(self.tree, resolved)
            self._add_directory(
                self.tree, resolved.path, self.tree.path_in_copy(resolved.path), field_path
            )
            return
        fetched = self.inputs.overlay.fetched.get(chart.reference)
        if fetched is not None:
            tree = self._other_tree(fetched, "", chart.reference)
            chart_path = tree.find(
                ".", fetched.path, find_location=self.location_finder(field_path)
            )
            self._add_directory(
                tree, chart_path.path, self.tree.path_in_copy(resolved.path), field_path
            )
        elif chart.repository:
            self.inputs.missing_remotes.setdefault(
                chart.reference, self.location_finder(field_path)()
            )
            self.inputs.remote_charts[chart.reference] = chart
        else:
            problem = f"no chart found at `{sanitize(chart.directory)}`, and no `repo` is set"
            raise RenderError(
                "render.kustomize.missing", problem, location=self.location_finder(field_path)()
            )

    def _add_directory(
        self, tree: Tree, directory: str, target: str, field_path: FieldPath
    ) -> None:
        """Add a whole directory. Links in it become copies of their targets."""
        copy = self.inputs.copy
        for name, _ in tree.list_names(directory):
            copy.count(ENTRY_COST, self.location_finder(field_path))
            resolved = tree.find(directory, name, find_location=self.location_finder(field_path))
            if resolved.kind is PathKind.DIRECTORY and is_below(directory, resolved.path):
                continue
            if resolved.kind is PathKind.DIRECTORY:
                self._add_directory(tree, resolved.path, f"{target}/{name}", field_path)
            elif resolved.kind is PathKind.FILE:
                copy.files[f"{target}/{name}"] = copy.read(
                    tree, resolved.path, self.location_finder(field_path)
                )

    def exists(self, text: str) -> bool:
        """Return whether a path exists, relative to the kustomization."""
        resolved = self.tree.find(
            self.directory, text, find_location=self.location_finder(("components",))
        )
        return resolved.kind is not PathKind.NOTHING

    def exists_below(self, text: str) -> bool:
        """Return whether a path exists; `..` cannot lead out of the directory."""
        path = posixpath.normpath(f"/{text}").lstrip("/")
        return self.exists(path or ".")

    def list_matches(self, pattern: str) -> list[str]:
        """Return the paths that match a pattern, relative to the kustomization."""
        if not is_pattern(pattern) or kustomization.is_remote(pattern):
            return []
        self.tree.cache_inputs.is_complete = (
            False  # `find_matches` lists directories without recording them
        )
        try:
            paths = find_matches(self.tree.root, normalize_path(pattern, self.directory))
        except PathEscapeError:
            return []
        except ValueError as error:
            problem = f"`{sanitize(pattern)}` is not a valid pattern: {error}"
            location = self.location_finder(("components",))()
            raise RenderError("render.kustomize.component", problem, location=location) from None
        return [posixpath.relpath(path, self.directory) for path in paths]

    def require_plain_list(self, body: JsonObject) -> None:
        """Raise RenderError if a directory of plugins does more than list files."""
        extra_keys = sorted(set(body) - kustomization.PLAIN_LIST_FIELDS)
        if extra_keys:
            problem = f"a directory of transformers or generators may not use `{extra_keys[0]}`"
            hint = "reference the configuration files directly"
            location = self.location_finder((extra_keys[0],))()
            raise RenderError("render.kustomize.plugin", problem, location=location, hint=hint)

    def _missing_error(
        self, role: PathRole, resolved: ResolvedPath, text: str, field_path: FieldPath
    ) -> RenderError:
        actual = (
            "it does not exist"
            if resolved.kind is PathKind.NOTHING
            else f"it is {resolved.kind.value}"
        )
        problem = f"`{sanitize(text)}` should be {role.value}, but {actual}"
        return RenderError(
            "render.kustomize.missing", problem, location=self.location_finder(field_path)()
        )

    def location_finder(self, field_path: FieldPath) -> FindLocation:
        """Return a function that finds the location of a field."""

        def find() -> Location:
            name = self.tree.label + self.path
            try:
                source = read_regular_file(self.tree.root / self.path)
                documents = read_documents(source, name)
                location = (
                    find_location(source, documents[0], field_path) if documents else Location(name)
                )
            except (OSError, DocumentError):
                location = Location(name)
            return location.with_field(format_path(field_path))

        return find
