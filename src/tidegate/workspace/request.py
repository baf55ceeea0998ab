"""The request to load a path or a repository address, and the plain unit that it names.

A path is a directory of manifests, an overlay or a chart. An address is that of a Git repository,
written as for kustomize, of an artifact in a registry, or with `chart` of a Helm repository.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import TypedDict, Unpack

import msgspec

from tidegate.dialect.argo.ignore_differences import read_ignore_file
from tidegate.errors import Location, RenderError, UsageError
from tidegate.files import read_user_file
from tidegate.model.display_paths import PathResolver, add_root, prefer_root
from tidegate.model.text.lazy_regex import lazy_regex
from tidegate.model.units.chart_request import (
    ChartRequest,
    FileParameter,
    InlineValues,
    Parameter,
    ParameterType,
    ValuesFile,
    ValuesLayer,
    ValuesUrl,
)
from tidegate.model.units.ignore_differences import IgnoreDifference
from tidegate.model.units.policy import Policy
from tidegate.model.units.rendering import Directory, HelmOptions, Overlay, ToolDetection
from tidegate.model.units.source import (
    ChartSource,
    GitRef,
    GitRefKind,
    LocalSource,
    OciSource,
    SourceRef,
)
from tidegate.model.units.unit import Destination, Unit, UnitId, UnitSource
from tidegate.render.scratch import scratch_directory
from tidegate.source.semver import read_range, read_version
from tidegate.workers.jq import Jq
from tidegate.workspace.generator_data import GeneratorData
from tidegate.workspace.rendering.sources import parse_base
from tidegate.workspace.roots import smallest_root


def register_display_root(root: Path) -> None:
    """Display files of this tree as paths that the user can open."""
    add_root(str(root), _display_finder(root))


def _display_finder(root: Path) -> PathResolver:
    current_directory = Path.cwd()

    @cache
    def find(name: str) -> str | None:
        """Return a path from the current directory on, else in full; None for no file."""
        try:
            file = root / name
            if not name or not (file.is_file() or file.is_dir()):
                return None
        except (OSError, ValueError):
            return None
        file = _resolve_dots(file)
        return str(
            file.relative_to(current_directory) if file.is_relative_to(current_directory) else file
        )

    return find


def _resolve_dots(file: Path) -> Path:
    """Return a path without `..`, which is resolved through links."""
    return file if ".." not in file.parts else file.resolve()


MAX_RELEASE_NAME = 53
_NOT_IN_NAME = lazy_regex("[^a-z0-9-]+")
FILESYSTEM_ROOT = "/"
"""Root of files that the user names: they may be anywhere on this machine."""
PACKED_CHART = ".tgz"
STDIN, STDIN_FILE = "-", "stdin/stdin.yaml"
GENERIC_DIRECTORIES = frozenset(
    [
        "base",
        "bases",
        "chart",
        "charts",
        "cluster",
        "clusters",
        "config",
        "default",
        "deploy",
        "deployment",
        "dev",
        "development",
        "env",
        "environments",
        "envs",
        "helm",
        "infra",
        "k8s",
        "kube",
        "kubernetes",
        "kustomize",
        "local",
        "main",
        "manifests",
        "overlay",
        "overlays",
        "preprod",
        "prod",
        "production",
        "qa",
        "sandbox",
        "stage",
        "staging",
        "test",
    ]
)
"""Directory names that many units share: they do not identify a unit by themselves."""


class RenderFlags(TypedDict, total=False):
    """Render flags of a plain unit."""

    revision: str
    chart: str
    name: str
    namespace: str
    values: tuple[str | Path, ...]
    """Paths and web addresses of values files."""
    parameters: tuple[tuple[str, str], ...]
    string_parameters: tuple[tuple[str, str], ...]
    file_parameters: tuple[tuple[str, str], ...]
    kube_version: str
    api_versions: tuple[str, ...]
    recurse: bool
    include: str
    exclude: str
    load_root: str | None


class UnitSelection(msgspec.Struct, frozen=True, kw_only=True):
    """Units of some kinds, by names or labels; by sources, the units that use them."""

    kinds: tuple[str, ...]
    names: tuple[str, ...] = ()
    labels: str = ""
    """Label selector, as for kubectl; empty for any labels."""
    namespace: str = ""
    """Namespace of the unit resources; empty for any."""


class LoadRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to load: a path or an address, flags for a plain unit, clusters and filters."""

    path_or_url: str
    """PATH of the command line, or the address of a repository."""
    render_flags: RenderFlags = msgspec.field(default_factory=RenderFlags)
    """Render flags, if it is a plain unit."""
    policy: Policy = msgspec.field(default_factory=Policy)
    """Policy of a plain unit; some of its fields apply to all units."""
    plain_unit_flags: tuple[str, ...] = ()
    """Flags in use that only apply to a plain unit."""
    clusters: tuple[str, ...] = ("",)
    """Names of clusters; a plain unit is deployed to each of them."""
    entry: str = ""
    """The root unit that is selected in a repository; empty for all."""
    units: tuple[str, ...] = ()
    """The units that are selected in a repository; empty for all."""
    selection: UnitSelection | None = None
    """Selects `units` by their kinds, once they are known."""
    generator_data: GeneratorData = msgspec.field(default_factory=dict)
    """Results of ApplicationSet generators that query external services."""
    allows_several: bool = False
    """Whether PATH may contain several things that nothing deploys together."""


class _SourcePath(msgspec.Struct, frozen=True):
    """A source, the directory in its tree, and the path parts that name the unit."""

    source: SourceRef
    path: str
    parts: tuple[str, ...]

    @property
    def last(self) -> str:
        return self.parts[-1] if self.parts else "unit"


def unit_for_path(
    path_or_url: str,
    policy: Policy | None = None,
    *,
    cluster: str = "",
    **flags: Unpack[RenderFlags],
) -> Unit:
    """Return the plain unit of a path or an address.

    Its name is the last part of its path, with the parts before it where the last is generic. The
    name never contains a revision. Raises RenderError for anything else.
    """
    source_path = _locate(path_or_url, flags)
    namespace = flags.get("namespace", "default")
    name = flags.get("name") or _unit_name(source_path.parts)
    return Unit(
        id=UnitId("", cluster, namespace, name),
        sources=(
            UnitSource(source=source_path.source, request=_render_request(source_path, flags)),
        ),
        destination=Destination(cluster, namespace),
        policy=policy or Policy(),
    )


def check_path_exists(request: LoadRequest) -> None:
    """Raise RenderError if the request names neither an existing path nor an address."""
    if not Path(request.path_or_url).is_file():
        _locate(request.path_or_url, request.render_flags)


def require_local(path_or_url: str) -> None:
    """Raise UsageError if revisions cannot be compared, because it is no path of a repository."""
    is_address = parse_base(path_or_url, submodules=False) is not None
    if path_or_url == STDIN or (is_address and not Path(path_or_url).exists()):
        problem = f"`{path_or_url}` is not a path in a Git repository on this machine"
        hint = "clone the repository, and set PATH to a directory in it"
        raise UsageError("usage.revisions", problem, hint=hint)


def read_ignore_differences(path: Path | None) -> tuple[IgnoreDifference, ...]:
    """Return the `ignoreDifferences` entries of a file; none without a file. Raises its errors."""
    with closing(Jq()) as jq:
        return () if path is None else read_ignore_file(read_user_file(path), str(path), jq.check)


def _locate(path_or_url: str, flags: RenderFlags) -> _SourcePath:
    revision, chart = flags.get("revision", ""), flags.get("chart", "")
    path = Path(path_or_url).resolve()
    if chart:
        return _SourcePath(ChartSource(path_or_url, chart, revision), ".", (chart,))
    if not path.exists():
        return _locate_remote(path_or_url, revision)
    is_packed = path.is_file() and path.name.endswith(PACKED_CHART)
    if revision or not (path.is_dir() or is_packed):
        raise _path_error(path_or_url, revision)
    root = repository_root(path, flags.get("load_root"))
    *parents, last = path.parts
    parts = (*parents, last.removesuffix(PACKED_CHART))
    return _SourcePath(LocalSource(str(root)), path.relative_to(root).as_posix(), parts[1:])


def _locate_remote(address: str, revision: str) -> _SourcePath:
    """Return the source that an address names, and the directory in it."""
    if address.startswith("oci://"):
        parts = tuple(address.removeprefix("oci://").rstrip("/").split("/"))
        return _SourcePath(_oci_source(address, revision), ".", parts[1:])
    base = parse_base(address, submodules=False)
    if base is None:
        raise _path_error(address, revision)
    at = GitRef(GitRefKind.ANY, revision) if revision else base.source.ref
    url = base.source.url.rstrip("/").removesuffix(".git")
    directories = (part for part in base.path.split("/") if part not in {"", "."})
    parts = (url.replace(":", "/").rpartition("/")[2], *directories)
    return _SourcePath(msgspec.structs.replace(base.source, ref=at), base.path, parts)


def _unit_name(parts: tuple[str, ...]) -> str:
    """Return enough of a path to identify a unit: `web-overlays-prod` for `web/overlays/prod`."""
    count = 1
    while count < len(parts) and parts[-count].lower() in GENERIC_DIRECTORIES:
        count += 1
    return "-".join(parts[-count:]) or "unit"


def _release_name(directory: str) -> str:
    """Return a valid release name for a chart in a directory: `my-shop` for `My_Shop`."""
    name = _NOT_IN_NAME.sub("-", directory.lower())[:MAX_RELEASE_NAME].strip("-.")
    return name or "release"


def _oci_source(url: str, revision: str) -> OciSource:
    if revision.startswith("sha256:"):
        return OciSource(url, digest=revision)
    if read_version(revision) is None and read_range(revision) is not None and revision:
        return OciSource(url, range=revision)
    return OciSource(url, tag=revision.replace("+", "_"))


def _render_request(source_path: _SourcePath, flags: RenderFlags) -> ChartRequest | ToolDetection:
    """Return a chart where the path can be nothing else; otherwise let the files decide."""
    version, api_versions = flags.get("kube_version", ""), flags.get("api_versions", ())
    chart = ChartRequest(
        chart=source_path.path,
        name=flags.get("name") or _release_name(source_path.last),
        namespace=flags.get("namespace", "default"),
        layers=_layers(flags),
        kube_version=version,
        api_versions=api_versions,
    )
    if source_path.path.endswith(PACKED_CHART):
        return chart
    overlay = Overlay(
        path=source_path.path, helm=HelmOptions(kube_version=version, api_versions=api_versions)
    )
    directory = Directory(
        path=source_path.path,
        recurse=flags.get("recurse", True),
        include=flags.get("include", ""),
        exclude=flags.get("exclude", ""),
    )
    return ToolDetection(path=source_path.path, chart=chart, overlay=overlay, directory=directory)


def _layers(flags: RenderFlags) -> tuple[ValuesLayer, ...]:
    files = (_values_layer(str(value)) for value in flags.get("values", ()))
    typed = (Parameter(*pair) for pair in flags.get("parameters", ()))
    texts = (Parameter(*pair, ParameterType.STRING) for pair in flags.get("string_parameters", ()))
    contents = (_file_parameter(*pair) for pair in flags.get("file_parameters", ()))
    return (*files, InlineValues(), *typed, *texts, *contents)


def _file_parameter(name: str, path: str) -> FileParameter:
    return FileParameter(name, str(Path(path).resolve()), root=FILESYSTEM_ROOT)


def _values_layer(text: str) -> ValuesFile | ValuesUrl:
    if text.lower().startswith(("https://", "http://")):
        return ValuesUrl(text)
    return ValuesFile(str(Path(text).resolve()), root=FILESYSTEM_ROOT)


@contextmanager
def stdin_manifests() -> Iterator[str]:
    """Write standard input to a temporary manifest file and yield its path."""
    content = sys.stdin.buffer.read()
    with scratch_directory() as folder:
        file = folder / STDIN_FILE  # a stable directory name
        file.parent.mkdir()
        file.write_bytes(content)
        add_root(str(file.parent), lambda name: name if name == file.name else None)
        yield str(file)


def find_root(path: Path, explicit_root: str | None = None) -> Path:
    """Return the repository root of a path, which overlays and charts must not leave.

    Outside a repository, the root contains everything that the path is built from. `explicit_root`
    has precedence over both.
    """
    if explicit_root is not None:
        return _check_within(path, Path(explicit_root).resolve())
    repository = next(
        (directory for directory in (path, *path.parents) if (directory / ".git").exists()), None
    )
    return repository or smallest_root(path)


def repository_root(path: Path, explicit_root: str | None = None) -> Path:
    """Return the repository root of a path, and register it for displaying locations."""
    root = find_root(path if path.is_dir() else path.parent, explicit_root)
    if path.exists():
        register_display_root(root)
    return root


def prefer_display_root(path_or_url: str) -> None:
    """Display locations in the repository of this path first, where several were loaded."""
    path = Path(path_or_url).resolve()
    if path.exists():
        prefer_root(str(find_root(path if path.is_dir() else path.parent)))


def _check_within(path: Path, root: Path) -> Path:
    if not path.is_relative_to(root):
        problem = f"`{path}` is not inside the root `{root}`"
        raise UsageError(
            "usage.root", problem, location=Location(str(path)), hint="set another --load-root"
        )
    return root


def _path_error(path_or_url: str, revision: str) -> RenderError:
    problem = f"`{path_or_url}` is not a directory"
    if revision and Path(path_or_url).exists():
        problem = f"`{path_or_url}` is a local directory and has no revisions"
    hint = "set PATH to a chart, an overlay, a directory of manifests or a repository URL"
    return RenderError("render.path", problem, location=Location(path_or_url), hint=hint)
