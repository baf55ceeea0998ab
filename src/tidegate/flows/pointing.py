"""What the user points at, as a plain unit: a path, or the address of a repository.

A path is a directory of manifests, an overlay or a chart. An address is that of a Git repository,
written as kustomize takes it, of an artifact in a registry, or with `chart` of a Helm repository.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypedDict, Unpack

import msgspec

from tidegate.dialect.argo.ignoring import read_ignored
from tidegate.dialect.argo.options import what_is_wrong, with_options
from tidegate.errors import Place, RenderError, WordsError
from tidegate.files import read_users_file
from tidegate.flows.generator_data import GeneratorData
from tidegate.flows.jq import Jq
from tidegate.flows.nearness import stand_before
from tidegate.flows.reaching import reach_of
from tidegate.flows.rendering.bases import read_base
from tidegate.model.ignoring import Ignored
from tidegate.model.policy import Policy
from tidegate.model.release import (
    FileParameter,
    How,
    Inline,
    Layer,
    Parameter,
    Release,
    ValuesAddress,
    ValuesFile,
)
from tidegate.model.rendering import Detected, Directory, Helm, Overlay
from tidegate.model.source import (
    ChartSource,
    GitRef,
    LocalSource,
    OciSource,
    RefKind,
    SourceRef,
)
from tidegate.model.unit import Destination, Unit, UnitId, UnitSource
from tidegate.render.scratch import scratch_directory
from tidegate.report.places import add_tree, prefer_tree
from tidegate.source.semver import read_range, read_version

ANYWHERE = "/"
"""The root of what a user names: it may lie wherever it is."""
PACKED_CHART = ".tgz"
STDIN, STDIN_FILE = "-", "stdin/stdin.yaml"
USUAL = frozenset(
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
"""Directories that many units have: they say where in a unit one is, and not which."""

__all__ = ["Words", "point_at", "read_ignores", "what_is_wrong", "with_options"]


class Words(TypedDict, total=False):
    """What the user may say besides. `values` are paths and web addresses."""

    revision: str
    chart: str
    name: str
    namespace: str
    values: tuple[str | Path, ...]
    parameters: tuple[tuple[str, str], ...]
    string_parameters: tuple[tuple[str, str], ...]
    file_parameters: tuple[tuple[str, str], ...]
    kube_version: str
    api_versions: tuple[str, ...]
    recurse: bool
    include: str
    exclude: str
    root: str | None


class Pointed(msgspec.Struct, frozen=True, kw_only=True):
    """What the user points at, and what is said of it.

    The words and the policy are those of a plain unit; each of the `clusters` gets one. `said` are
    the options by which only such a unit can be meant. `entry` and `units` narrow a repository.
    `generator_data`: what generators of ApplicationSets find.
    """

    what: str
    words: Words = msgspec.field(default_factory=Words)
    policy: Policy = msgspec.field(default_factory=Policy)
    said: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ("",)
    entry: str = ""
    units: tuple[str, ...] = ()
    generator_data: GeneratorData = msgspec.field(default_factory=dict)


class _Tree(msgspec.Struct, frozen=True):
    """A tree, where in it the files are, and the parts of a path that tell them from others."""

    source: SourceRef
    inside: str
    parts: tuple[str, ...]

    @property
    def last(self) -> str:
        return self.parts[-1] if self.parts else "unit"


def point_at(
    what: str, policy: Policy | None = None, *, cluster: str = "", **words: Unpack[Words]
) -> Unit:
    """The unit that is meant. Raises a RenderError for what is no directory here, nor an address.

    Its name is the last part of its path, with those before it where the last says little: it never
    holds a revision.
    """
    tree = _find(what, words)
    namespace = words.get("namespace", "default")
    name = words.get("name") or _name_of(tree.parts)
    return Unit(
        id=UnitId("", cluster, namespace, name),
        sources=(UnitSource(source=tree.source, request=_request(tree, words)),),
        destination=Destination(cluster, namespace),
        policy=policy or Policy(),
    )


def refuse_nowhere(pointed: Pointed) -> None:
    """Raise a RenderError for what is neither here, nor an address."""
    if not Path(pointed.what).is_file():
        _find(pointed.what, pointed.words)


def read_ignores(path: Path | None) -> tuple[Ignored, ...]:
    """The fields that a file says are no difference. Raises what is wrong with it."""
    with closing(Jq()) as jq:
        return () if path is None else read_ignored(read_users_file(path), str(path), jq.check)


def _find(what: str, words: Words) -> _Tree:
    revision, chart = words.get("revision", ""), words.get("chart", "")
    path = Path(what).resolve()
    if chart:
        return _Tree(ChartSource(what, chart, revision), ".", (chart,))
    if not path.exists():
        return _find_elsewhere(what, revision)
    is_packed = path.is_file() and path.name.endswith(PACKED_CHART)
    if revision or not (path.is_dir() or is_packed):
        raise _not_a_directory(what, revision)
    root = look_from(path, words.get("root"))
    *above, last = path.parts
    named = (*above, last.removesuffix(PACKED_CHART))
    return _Tree(LocalSource(str(root)), path.relative_to(root).as_posix(), named[1:])


def _find_elsewhere(what: str, revision: str) -> _Tree:
    """What an address means, and the directory in it."""
    if what.startswith("oci://"):
        parts = tuple(what.removeprefix("oci://").rstrip("/").split("/"))
        return _Tree(_artifact(what, revision), ".", parts[1:])
    base = read_base(what, submodules=False)
    if base is None:
        raise _not_a_directory(what, revision)
    at = GitRef(RefKind.ANY, revision) if revision else base.source.at
    url = base.source.url.rstrip("/").removesuffix(".git")
    inside = (part for part in base.path.split("/") if part not in {"", "."})
    parts = (url.replace(":", "/").rpartition("/")[2], *inside)
    return _Tree(msgspec.structs.replace(base.source, at=at), base.path, parts)


def _name_of(parts: tuple[str, ...]) -> str:
    """Enough of a path to tell it from others: `web/overlays/prod` is `web-overlays-prod`."""
    count = 1
    while count < len(parts) and parts[-count].lower() in USUAL:
        count += 1
    return "-".join(parts[-count:]) or "unit"


def _artifact(url: str, revision: str) -> OciSource:
    if revision.startswith("sha256:"):
        return OciSource(url, digest=revision)
    if read_version(revision) is None and read_range(revision) is not None and revision:
        return OciSource(url, range=revision)
    return OciSource(url, tag=revision.replace("+", "_"))


def _request(tree: _Tree, words: Words) -> Release | Detected:
    """A chart where it can be nothing else; else what the files speak for."""
    version, served = words.get("kube_version", ""), words.get("api_versions", ())
    chart = Release(
        chart=tree.inside,
        name=words.get("name") or tree.last,
        namespace=words.get("namespace", "default"),
        layers=_layers(words),
        kube_version=version,
        api_versions=served,
    )
    if tree.inside.endswith(PACKED_CHART):
        return chart
    overlay = Overlay(path=tree.inside, helm=Helm(kube_version=version, api_versions=served))
    directory = Directory(
        path=tree.inside,
        recurse=words.get("recurse", True),
        include=words.get("include", ""),
        exclude=words.get("exclude", ""),
    )
    return Detected(path=tree.inside, chart=chart, overlay=overlay, directory=directory)


def _layers(words: Words) -> tuple[Layer, ...]:
    files = (_values(str(one)) for one in words.get("values", ()))
    typed = (Parameter(*pair) for pair in words.get("parameters", ()))
    texts = (Parameter(*pair, How.STRING) for pair in words.get("string_parameters", ()))
    contents = (_content(*pair) for pair in words.get("file_parameters", ()))
    return (*files, Inline(), *typed, *texts, *contents)


def _content(name: str, path: str) -> FileParameter:
    return FileParameter(name, str(Path(path).resolve()), root=ANYWHERE)


def _values(text: str) -> ValuesFile | ValuesAddress:
    if text.lower().startswith(("https://", "http://")):
        return ValuesAddress(text)
    return ValuesFile(str(Path(text).resolve()), root=ANYWHERE)


@contextmanager
def standard_input() -> Iterator[str]:
    """What somebody pipes in, as a file of manifests that is gone afterwards."""
    content = sys.stdin.buffer.read()
    with scratch_directory() as folder:
        file = folder / STDIN_FILE  # in a directory whose name is the same each time
        file.parent.mkdir()
        file.write_bytes(content)
        add_tree(str(file.parent), lambda name: name if name == file.name else None)
        yield str(file)


def root_of(path: Path, bound: str | None = None) -> Path:
    """The repository of a path: overlays and charts may reach that far, and no farther.

    Where there is none, it is what the path itself is built from; a `bound` of the user's counts
    before both.
    """
    if bound is not None:
        return _within(path, Path(bound).resolve())
    found = next((one for one in (path, *path.parents) if (one / ".git").exists()), None)
    return found or reach_of(path)


def look_from(path: Path, bound: str | None = None) -> Path:
    """The repository of a path, in which places are told from now on."""
    root = root_of(path if path.is_dir() else path.parent, bound)
    if path.exists():
        stand_before(root)
    return root


def stand_again(what: str) -> None:
    """Tell places in the repository of this path, where several were looked at."""
    path = Path(what).resolve()
    if path.exists():
        prefer_tree(str(root_of(path if path.is_dir() else path.parent)))


def _within(path: Path, root: Path) -> Path:
    if not path.is_relative_to(root):
        problem = f"`{path}` is not inside `{root}`, which is to be its root"
        raise WordsError("words.root", problem, where=Place(str(path)), hint="give another --root")
    return root


def _not_a_directory(what: str, revision: str) -> RenderError:
    problem = f"`{what}` is not a directory"
    if revision and Path(what).exists():
        problem = f"`{what}` is a directory here, and has no revisions"
    hint = "name a chart, an overlay or a directory of manifests, or the address of a repository"
    return RenderError("render.path", problem, where=Place(what), hint=hint)
