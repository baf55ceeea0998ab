"""Discovery of units: from PATH to root units to unit trees.

    result = await discover(request, settings, get_capabilities)
    unit_trees = select_trees(result, request)

A chart, an overlay or an address is one plain unit, with the units that it creates. In a tree of
files every unit resource is a candidate, and those that no other unit creates are the roots. A
tree without unit resources is one plain directory, unless it contains overlays or charts.
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from tidegate.dialect.argo.appset.queries import RegisteredCluster
from tidegate.dialect.argo.argocd_cm import read_argocd_config
from tidegate.dialect.flux.access import find_denied_access
from tidegate.errors import PlanError
from tidegate.model.config import Config
from tidegate.model.finding import Finding, Severity
from tidegate.model.k8s.capabilities import Capabilities
from tidegate.model.text.names import unknown_name_error
from tidegate.model.units.rendering import NO_ROOT, Directory, Tool
from tidegate.model.units.source import LocalSource
from tidegate.model.units.unit import Unit, UnitId, UnitSource
from tidegate.render.tool_detection import detect_tool
from tidegate.source import VendoredCharts, fetch
from tidegate.workers.rendering import RenderSettings
from tidegate.workspace.config import configured_checkouts, filter_ignored, load_config
from tidegate.workspace.discovery.absent_files import absent_file_findings
from tidegate.workspace.discovery.ambiguity import (
    find_nested,
    nested_findings,
    require_single_target,
    template_findings,
    unit_chart_findings,
    unused_findings,
    values_findings,
)
from tidegate.workspace.discovery.appsets import (
    AppSetExpander,
    ExpandedAppSet,
    ListLive,
    clusters_of_units,
    known_clusters,
    list_nothing,
)
from tidegate.workspace.discovery.bootstrap import without_bootstrap_dependencies
from tidegate.workspace.discovery.controller_settings import (
    find_health_rules,
    find_settings,
    rolling_sync_findings,
    settings_findings,
    unknown_cluster_findings,
    without_excluded,
)
from tidegate.workspace.discovery.findings import repository_findings
from tidegate.workspace.discovery.left_out import split_left_out
from tidegate.workspace.discovery.order import narrow_tree
from tidegate.workspace.discovery.projects import Projects
from tidegate.workspace.discovery.result import DiscoveryResult
from tidegate.workspace.discovery.scan import MANIFEST_SUFFIXES, RepositoryScan
from tidegate.workspace.discovery.self_repository import RepositoryAliases, find_repository_aliases
from tidegate.workspace.discovery.separate import (
    chart_units,
    environment_findings,
    plain_units,
    separate_units,
    soften_assumed_units,
    with_files,
    without_deployed_charts,
)
from tidegate.workspace.discovery.tree_objects import with_objects_of_trees
from tidegate.workspace.discovery.unit_tree import (
    RenderedUnit,
    RenderFunction,
    UnitNode,
    UnitTree,
    UnitTreeBuilder,
    build_unit_tree,
    directory_units,
    find_roots,
    is_included,
    is_of_instance,
    overlay_units,
    renders_itself,
    with_applied_names,
    without_covered_parents,
    without_deployed_objects,
    without_implicit_parent,
)
from tidegate.workspace.generator_data import GeneratorData
from tidegate.workspace.rendering.context import RenderContext
from tidegate.workspace.rendering.render_unit import render_unit
from tidegate.workspace.rendering.result import RenderFailure, RenderResult
from tidegate.workspace.rendering.sources import FindData
from tidegate.workspace.request import LoadRequest, repository_root

GetCapabilities: TypeAlias = Callable[[str], Awaitable[Capabilities]]
CONCURRENT_UNITS = 16
"""Number of units that are rendered at a time; workers and fetches have their own limits."""


class DiscoveryContext(msgspec.Struct, frozen=True):
    """Inputs of one discovery, the same for all units."""

    settings: RenderSettings
    get_capabilities: GetCapabilities
    config: Config
    generator_data: GeneratorData
    list_live: ListLive = list_nothing
    created_clusters: tuple[RegisteredCluster, ...] = ()
    """Clusters that units of this repository register with Argo CD."""

    def tree_builder(self, scan: RepositoryScan, render_context: RenderContext) -> UnitTreeBuilder:
        expander = AppSetExpander(
            render_context,
            scan,
            self.config,
            self.generator_data,
            self.list_live,
            self.created_clusters,
        )
        return UnitTreeBuilder(scan, self._renderer(render_context), expander)

    def _renderer(self, render_context: RenderContext) -> RenderFunction:
        slots = asyncio.Semaphore(CONCURRENT_UNITS)

        async def render(unit: Unit, find_data: FindData) -> RenderResult | RenderFailure:
            async with slots:
                await asyncio.sleep(0)  # noqa: TID251 - no pause: tools are heard between units
                capabilities = await self.get_capabilities(unit.destination.cluster)
                return await render_unit(unit, capabilities, render_context, find_data)

        return render


NO_CONFIG = Config()


async def discover(
    request: LoadRequest,
    settings: RenderSettings,
    get_capabilities: GetCapabilities,
    list_live: ListLive = list_nothing,
) -> DiscoveryResult:
    """Find the units of a request. Raises if there is nothing to find."""
    result = await _discover(request, settings, get_capabilities, list_live)
    members = (member for unit_tree in result.unit_trees for member in unit_tree.members)
    used_paths = {source.path for member in members for source in member.unit.sources}
    findings = (*result.findings, *absent_file_findings(result.scan, used_paths))
    return replace(result, findings=result.scan.locator.locate_findings(findings))


async def _discover(
    request: LoadRequest,
    settings: RenderSettings,
    get_capabilities: GetCapabilities,
    list_live: ListLive,
) -> DiscoveryResult:
    target = _inspect_path(request.path_or_url, request.render_flags.get("load_root"))
    scan, settings = await _scan_target(target, settings)
    context = DiscoveryContext(
        settings, get_capabilities, target.config, request.generator_data, list_live
    )
    if not (target.is_tree or target.is_file):
        result = await _discover_plain_units(plain_units(request), scan, context)
        is_chart = scan.search_path in scan.charts and not request.render_flags.get("values")
        charts = [scan.search_path] if is_chart else []
        return replace(result, findings=(*result.findings, *values_findings(charts, scan)))
    if scan.has_units:
        aliases = await find_repository_aliases(scan, settings)
        if aliases.candidates:
            require_single_target(request.path_or_url, scan, aliases.candidates)
        result = await _discover_repository(aliases, context)
        members = [member for unit_tree in result.unit_trees for member in unit_tree.members]
        findings = (
            *result.findings,
            *unit_chart_findings(aliases.scan, result.unit_trees),
            *rolling_sync_findings(result.unit_trees, result.controller_settings),
            *find_denied_access(
                ((member.unit, member.remote_bases) for member in members),
                result.controller_settings,
            ),
        )
        return _select_configured_roots(replace(result, findings=findings), target.config)
    if target.is_file:
        return await _discover_plain_units(_file_units(request, scan), scan, context)
    if scan.unit_charts:
        result = await _discover_plain_units(
            chart_units(request, scan), scan, context, deployed_charts=False
        )
        roots = {unit_tree.members[0].unit.sources[0].path for unit_tree in result.unit_trees}
        unnamed = () if request.render_flags.get("values") else sorted(roots)
        result = soften_assumed_units(result)
        return replace(
            result,
            findings=(
                *result.findings,
                *environment_findings(unnamed, scan),
                *unused_findings(scan, result.unit_trees),
            ),
        )
    nested = find_nested(scan)
    if nested and request.allows_several:
        result = await _discover_plain_units(separate_units(request, scan), scan, context)
        return replace(soften_assumed_units(result), are_separate=True)
    if nested and scan.search_path not in scan.manifest_directories:
        require_single_target(request.path_or_url, scan)
    units = (
        [_without_nested(unit, nested, scan) for unit in plain_units(request)]
        if nested
        else plain_units(request)
    )
    result = await _discover_plain_units(units, scan, context)
    return replace(result, findings=(*result.findings, *nested_findings(nested)))


async def find_appsets(
    request: LoadRequest, settings: RenderSettings
) -> tuple[list[ExpandedAppSet], tuple[Finding, ...]]:
    """Return the ApplicationSets of a file or a directory, expanded; no unit is rendered."""
    target = _inspect_path(request.path_or_url, request.render_flags.get("load_root"))
    scan, settings = await _scan_target(target, settings)
    aliases = await find_repository_aliases(scan, settings)
    if aliases.candidates:
        require_single_target(request.path_or_url, scan, aliases.candidates)
    scan = aliases.scan
    expanded, findings = list[ExpandedAppSet](), [*aliases.findings, *scan.parse_findings]
    async with RenderContext(aliases.settings) as render_context:
        expander = AppSetExpander(render_context, scan, target.config, request.generator_data)
        for _, declared in scan.searched_declarations:
            expanded += [await expander.expand(appset) for appset in declared.application_sets]
            findings += declared.findings if declared.application_sets else ()
    findings += (finding for expanded_set in expanded for finding in expanded_set.declared.findings)
    return expanded, scan.locator.locate_findings(dict.fromkeys(findings))


class _PathTarget(msgspec.Struct, frozen=True):
    """What exists at PATH; nothing for an address."""

    path: Path | None = None
    root: Path = NO_ROOT
    is_tree: bool = False
    is_file: bool = False
    config: Config = NO_CONFIG


def _inspect_path(path_or_url: str, explicit_root: str | None) -> _PathTarget:
    path = Path(path_or_url).resolve()
    if not path.exists():
        return _PathTarget()
    root = repository_root(path, explicit_root)
    is_tree = path.is_dir() and _detect_tool(path) is Tool.DIRECTORY
    is_file = path.is_file() and path.name.endswith(MANIFEST_SUFFIXES)
    return _PathTarget(path, root, is_tree, is_file, load_config(path))


def _select_configured_roots(result: DiscoveryResult, config: Config) -> DiscoveryResult:
    """Keep the root units that the configuration names, if it names any."""
    if not config.roots:
        return result
    selected = [
        unit_tree
        for unit_tree in result.unit_trees
        if any(matches_name(unit_tree.members[0].unit, entry.text) for entry in config.roots)
    ]
    unknown = [
        Finding(
            code="config.root",
            severity=Severity.ERROR,
            message=f"root `{entry.text}` not found",
            location=entry.location,
            fix="remove `roots` and run `tidegate units` to list all roots",
        )
        for entry in config.roots
        if not any(
            matches_name(unit_tree.members[0].unit, entry.text) for unit_tree in result.unit_trees
        )
    ]
    return replace(result, unit_trees=tuple(selected), findings=(*result.findings, *unknown))


def _detect_tool(path: Path) -> Tool:
    return detect_tool(entry.name for entry in path.iterdir())


def _without_nested(unit: Unit, nested: Sequence[str], scan: RepositoryScan) -> Unit:
    """Return a plain directory without the overlays and charts inside it."""
    prefixes = tuple(f"{path}/" for path in nested)
    files = tuple(
        file for file in scan.files if scan.is_searched(file) and not file.startswith(prefixes)
    )
    return with_files(unit, files)


def _file_units(load_request: LoadRequest, scan: RepositoryScan) -> list[Unit]:
    """Return a manifest file as a plain unit, once for each cluster."""
    folder = posixpath.dirname(scan.search_path) or "."
    request = Directory(path=folder, files=(scan.search_path,), must_be_manifests=True)
    source = UnitSource(source=LocalSource(str(scan.root)), request=request)
    parent = replace(load_request, path_or_url=str(Path(load_request.path_or_url).parent))
    stem = Path(load_request.path_or_url).stem
    return [
        msgspec.structs.replace(
            unit,
            id=msgspec.structs.replace(unit.id, name=load_request.render_flags.get("name") or stem),
            sources=(source,),
        )
        for unit in plain_units(parent)
    ]


async def _scan_target(
    target: _PathTarget, settings: RenderSettings
) -> tuple[RepositoryScan, RenderSettings]:
    """Scan the tree of a target; return the scan, and the settings to fetch sources for it."""
    settings = replace(
        settings, checkouts=(*settings.checkouts, *configured_checkouts(target.config))
    )
    if target.path is None:
        return RepositoryScan(NO_ROOT, ()), settings
    async with RenderContext(settings) as context:
        tree = await fetch(LocalSource(str(target.root)), await context.fetch_options(None))
    files = filter_ignored(tree.files, target.root, target.config)
    search_path = target.path.relative_to(target.root).as_posix()
    scan = RepositoryScan(target.root, files, search_path, escaping_links=tree.escaping_links)
    vendored = VendoredCharts(scan.files, scan.root)
    return scan, replace(
        settings,
        vendored=vendored,
        scanned_tree=tree,
        scanned_files=scan.rooted_files,
        read=scan.read_documents,
    )


async def _discover_plain_units(
    units: list[Unit],
    scan: RepositoryScan,
    context: DiscoveryContext,
    *,
    deployed_charts: bool = True,
) -> DiscoveryResult:
    """Discover plain units and all units that they create.

    The units that are created may show which repository this is. `deployed_charts`: whether to
    keep charts that a unit of another chart deploys.
    """
    settings = replace(context.settings, search_pattern=None)
    aliases = await find_repository_aliases(scan, settings)
    unit_trees = await _build_trees(units, scan, context, aliases)
    created = [member.unit for unit_tree in unit_trees for member in unit_tree.members[1:]]
    if created and not aliases.findings:
        aliases = await find_repository_aliases(scan, settings, created)
        unit_trees = (
            await _build_trees(units, scan, context, aliases) if aliases.findings else unit_trees
        )
    if not deployed_charts:
        unit_trees = without_deployed_charts(unit_trees, scan.root)
    if all(
        len(unit_tree.members) == 1 and not unit_tree.members[0].declared.findings
        for unit_tree in unit_trees
    ):
        are_paths = all(unit_tree.members[0].unit.is_path for unit_tree in unit_trees)
        failures = () if are_paths else repository_findings(unit_trees, scan)
        return DiscoveryResult(unit_trees, tuple(failures), scan=scan)
    return await _conclude(unit_trees, scan, context, aliases.findings)


async def _build_trees(
    units: list[Unit], scan: RepositoryScan, context: DiscoveryContext, aliases: RepositoryAliases
) -> tuple[UnitTree, ...]:
    async with RenderContext(aliases.settings) as render_context:
        builder = context.tree_builder(scan, render_context)
        nodes = await with_objects_of_trees(await builder.build(units), builder, scan)
    return tuple(
        without_implicit_parent(tree, tree.members[0].unit.sources[0].path, scan.root)
        if tree.members[0].unit.is_implicit
        else tree
        for tree in (build_unit_tree(node, scan) for node in nodes)
    )


async def _discover_repository(
    aliases: RepositoryAliases, context: DiscoveryContext
) -> DiscoveryResult:
    """Discover the unit trees of a repository.

    Its units may register clusters that its own ApplicationSets generate Applications for: then
    the trees are built again.
    """
    while True:
        unit_trees, findings = await _find_unit_trees(aliases, context)
        members = [member for unit_tree in unit_trees for member in unit_tree.members]
        declarations = (*aliases.scan.declared.values(), *(member.declared for member in members))
        sets = (appset for declaration in declarations for appset in declaration.application_sets)
        known_names = {
            cluster.name
            for cluster in (
                *known_clusters(aliases.scan, context.config),
                *context.created_clusters,
            )
        }
        registered = clusters_of_units(
            sets, (document for member in members for document in member.documents)
        )
        new_clusters = tuple(
            cluster for cluster in registered if cluster.name and cluster.name not in known_names
        )
        if not new_clusters:
            break
        context = replace(context, created_clusters=(*context.created_clusters, *new_clusters))
    result = await _conclude(_sorted(unit_trees), aliases.scan, context, findings)
    return replace(result, is_repository=True)


async def _find_unit_trees(
    aliases: RepositoryAliases, context: DiscoveryContext
) -> tuple[list[UnitTree], tuple[Finding, ...]]:
    """Return the unit trees of a repository, and the findings about how they depend on each other.

    An overlay may patch the files that it includes, so that they are units only if nothing else
    creates them. A unit that renders its own file is the root of its tree.
    """
    scan = aliases.scan
    async with RenderContext(aliases.settings) as render_context:
        builder = context.tree_builder(scan, render_context)
        build = builder.build
        await builder.expand_appsets()
        standalone = [
            unit
            for unit in scan.candidates
            if not is_included(unit, scan) or renders_itself(unit) or is_of_instance(unit, scan)
        ]
        nodes = [
            node
            for node in await with_applied_names(await build(standalone), builder)
            if not _is_generator_input(node.member.unit, scan)
        ]
        trees, findings = await _deployed_trees(nodes, build, scan)
        unit_trees = [unit_tree for unit_tree, _ in trees]
        groups = [*directory_units(unit_trees, scan)]
        grouped = {id(sibling) for _, siblings in groups for sibling in siblings}
        parents = await build([parent for parent, _ in groups])
        remaining_ids = {id(tree) for tree in unit_trees} - grouped
        nodes = [node for tree, node in trees if id(tree) in remaining_ids]
        nodes = await with_objects_of_trees([*nodes, *parents], builder, scan)
        unit_trees = [without_bootstrap_dependencies(build_unit_tree(node, scan)) for node in nodes]
    return without_deployed_objects(unit_trees), (
        *aliases.findings,
        *findings,
        *template_findings(scan, unit_trees),
        *scan.parse_findings,
    )


async def _deployed_trees(
    nodes: list[UnitNode],
    build: Callable[[list[Unit]], Awaitable[list[UnitNode]]],
    scan: RepositoryScan,
) -> tuple[list[tuple[UnitTree, UnitNode]], list[Finding]]:
    """Return the trees of the roots that something may deploy, with findings about the others.

    A unit that nothing deploys may create the root of a cluster, which is searched again then.
    """
    left_out: dict[Finding, None] = {}
    while True:
        roots, cycles = find_roots(nodes)
        created = {name for node in roots for name in build_unit_tree(node, scan).identifiers}
        remaining = [
            unit for unit in scan.candidates if not {str(unit.id), str(unit.location)} & created
        ]
        roots, more_cycles = find_roots([*roots, *await build(overlay_units(remaining, scan))])
        roots = without_covered_parents(roots)
        trees = [(build_unit_tree(node, scan), node) for node in roots]
        kept, findings = split_left_out((tree for tree, _ in trees), scan)
        left_out |= dict.fromkeys(findings)
        deployed = {name for unit_tree in kept for name in unit_tree.identifiers}
        dropped = {str(node.member.unit.location) for node in roots} - deployed
        others = [node for node in nodes if str(node.member.unit.location) not in dropped]
        is_hidden = any(
            str(node.member.unit.location) not in deployed and renders_itself(node.member.unit)
            for node in others
        )
        if not is_hidden or len(others) == len(nodes):
            kept_ids = {id(unit_tree) for unit_tree in kept}
            deployed_trees = [(tree, node) for tree, node in trees if id(tree) in kept_ids]
            return deployed_trees, [*cycles, *more_cycles, *left_out]
        nodes = others


def _is_generator_input(unit: Unit, scan: RepositoryScan) -> bool:
    return unit.location is not None and unit.location.name in scan.generator_inputs


async def _conclude(
    unit_trees: Sequence[UnitTree],
    scan: RepositoryScan,
    context: DiscoveryContext,
    findings: Iterable[Finding],
) -> DiscoveryResult:
    """Apply the settings of the controllers and the projects to the unit trees."""
    repository_settings = find_settings(
        (member for unit_tree in unit_trees for member in unit_tree.members), scan
    )
    settings = {
        **{setting.name: setting for setting in context.config.settings},
        **repository_settings,
    }
    clusters = (*known_clusters(scan, context.config), *context.created_clusters)
    projects = Projects.from_scan(scan, settings, clusters)
    await projects.load_live(unit_trees, context.list_live)
    governed, denials = projects.apply(unit_trees)
    argocd_config = read_argocd_config(settings)
    remaining, exclusions = without_excluded(governed, argocd_config.filters)
    scripts, rule_findings = find_health_rules(settings)
    all_findings = [*findings, *repository_findings(unit_trees, scan), *denials, *exclusions]
    all_findings += unknown_cluster_findings(unit_trees, clusters)
    all_findings += (
        *settings_findings(repository_settings),
        *argocd_config.findings,
        *rule_findings,
    )
    names = frozenset(cluster.name for cluster in clusters)
    return DiscoveryResult(
        tuple(remaining), tuple(all_findings), settings, False, scan, scripts, names
    )


def _sorted(unit_trees: Iterable[UnitTree]) -> tuple[UnitTree, ...]:
    return tuple(
        sorted(
            unit_trees,
            key=lambda unit_tree: (str(unit_tree.members[0].unit.location), unit_tree.root_id),
        )
    )


def select_trees(result: DiscoveryResult, request: LoadRequest) -> tuple[UnitTree, ...]:
    """Return the selected trees with their selected units. Raises PlanError for an unknown name."""
    unit_trees = result.unit_trees
    if request.entry:
        roots = find_units(request.entry, map(_root_unit, unit_trees), noun="root")
        unit_trees = tuple(tree for tree in unit_trees if _root_unit(tree) in roots)
    if not request.units:
        return unit_trees
    units = [member.unit for unit_tree in unit_trees for member in unit_tree.members]
    for name in request.units:
        find_units(name, units)
    return tuple(
        subtree
        for unit_tree in unit_trees
        if (subtree := _select_units(unit_tree, request.units)).members
    )


def _select_units(unit_tree: UnitTree, names: Sequence[str]) -> UnitTree:
    """Return the units that are named and their descendants, parents first."""
    selected: dict[UnitId, RenderedUnit] = {}
    for member in unit_tree.members:
        unit = member.unit
        if unit.parent in selected or matches_name(unit, *names):
            selected[unit.id] = member
    return narrow_tree(unit_tree, tuple(selected.values()))


def _root_unit(unit_tree: UnitTree) -> Unit:
    return unit_tree.members[0].unit


def find_units(name: str, units: Iterable[Unit], *, noun: str = "unit") -> list[Unit]:
    """Return the units with a name, or in a directory of that name. Raises PlanError for none."""
    units = [*units]
    matches = [unit for unit in units if matches_name(unit, name)]
    if not matches:
        known = (unit_name for unit in units for unit_name in _unit_names(unit))
        raise unknown_name_error(name, known, partial(PlanError, "plan.named"), noun=noun)
    return matches


def matches_name(unit: Unit, *names: str) -> bool:
    """Return whether a unit has one of these names, or is in a directory of that name."""
    file = unit.location.name if unit.location else ""
    return any(
        name in _unit_names(unit) or file.startswith(f"{name.rstrip('/').removeprefix('./')}/")
        for name in names
    )


def _unit_names(unit: Unit) -> tuple[str, ...]:
    """Return the names of a unit, its file, and its line in the file."""
    location = unit.location
    places = (location.name, f"{location.name}:{location.line}") if location else ()
    return (*unit.id.names, *places)


def distinct_names(units: Iterable[Unit]) -> list[str]:
    """Return a name of each unit that none of the others has, or its ID if there is none."""
    units = [*units]
    names = [_unit_names(unit) for unit in units]
    return [
        next(
            (name for name in unit_names if sum(name in other for other in names) == 1),
            str(unit.id),
        )
        for unit, unit_names in zip(units, names, strict=True)
    ]
