"""Two revisions of one repository, each as a request to load PATH in it.

async with open_revisions(request, RevisionNames(base="main"), settings) as revisions:
    async with open_workspace(revisions.base.request, target, settings) as (session, workspace):
        ...
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tidegate.errors import Location, SourceError
from tidegate.model.display_paths import DirectoryCopy, add_copy
from tidegate.source.options import FetchOptions
from tidegate.source.revisions import Commit, LocalRepository, open_repository
from tidegate.workers.rendering import RenderSettings
from tidegate.workspace.rendering.context import RenderContext
from tidegate.workspace.request import LoadRequest, RenderFlags

HEAD = "HEAD"
MERGE_BASE = "..."
"""The end of a base that means the merge base with a revision."""


class RevisionNames(msgspec.Struct, frozen=True, kw_only=True):
    """The revisions that a user compares."""

    base: str = ""
    """Empty for the merge base with the upstream branch, else with the default branch. `REV...` is
    the merge base with a revision.
    """
    head: str = ""
    """Empty for the working tree."""


class Revision(msgspec.Struct, frozen=True, kw_only=True):
    """One revision of a repository."""

    name: str
    """What the user calls it; empty for the working tree."""
    commit: str = ""
    """Its commit; empty for the working tree."""
    request: LoadRequest | None
    """The request to load PATH in it; None if PATH does not exist there."""


class Revisions(msgspec.Struct, frozen=True):
    """The two revisions that are compared."""

    base: Revision
    head: Revision


@asynccontextmanager
async def open_revisions(
    request: LoadRequest, names: RevisionNames, settings: RenderSettings
) -> AsyncIterator[Revisions]:
    """Write the revisions to directories, which are removed at the end.

    Raises SourceError if a revision cannot be read, or if neither has PATH.
    """
    path, existing = _local_path(request)
    async with RenderContext(settings) as context:
        options = await context.fetch_options(None)
    with _revision_folder() as folder:
        async with open_repository(existing, options) as repository:
            writer = _RevisionWriter(request, path, repository, options, folder)
            base = await _find_base(repository, names)
            head = await repository.find_commit(names.head) if names.head else None
            revisions = Revisions(
                await writer.write(base, "base"),
                await writer.write(head, "head") if head else writer.working_tree(),
            )
        if revisions.base.request is None and revisions.head.request is None:
            raise SourceError(
                "source.local",
                "the path exists in neither revision",
                location=Location(request.path_or_url),
            )
        yield revisions


async def _find_base(repository: LocalRepository, names: RevisionNames) -> Commit:
    """Return the commit to compare with; `REV...` is the merge base with a revision, as in git."""
    revision = names.base.removesuffix(MERGE_BASE)
    if names.base and revision == names.base:
        return await repository.find_commit(revision)
    return await repository.find_merge_base(names.head or HEAD, revision)


def _local_path(request: LoadRequest) -> tuple[Path, Path]:
    """Return the path of a request, and its closest directory that exists."""
    path = Path(request.path_or_url).resolve()
    return path, next(parent for parent in (path, *path.parents) if parent.is_dir())


@contextmanager
def _revision_folder() -> Iterator[Path]:
    """Create a directory for revisions, which is removed at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="tidegate-revision-") as folder:
        yield Path(folder).resolve()


class _RevisionWriter(msgspec.Struct, frozen=True):
    """Writer of the revisions of one repository."""

    request: LoadRequest
    path: Path
    repository: LocalRepository
    options: FetchOptions
    folder: Path
    """The directory in which revisions are written."""

    def working_tree(self) -> Revision:
        return Revision(name="", request=self.request if self.path.exists() else None)

    async def write(self, commit: Commit, side: str) -> Revision:
        """Write a commit. Its directory has the path of the repository, which may name a unit."""
        root = self.repository.root.resolve()
        directory = self.folder / side / root.relative_to(root.anchor)
        await asyncio.to_thread(directory.mkdir, parents=True)
        written = await self.repository.write_commit(commit, directory, self.options)
        copy = DirectoryCopy(_relative_to_cwd(root), frozenset(written.files))
        add_copy(str(directory), copy)
        path = self._in_copy(self.path, directory)
        return Revision(
            name=commit.name,
            commit=commit.hash,
            request=self._request_in(directory, path) if path.exists() else None,
        )

    def _request_in(self, directory: Path, path: Path) -> LoadRequest:
        flags = RenderFlags(**self.request.render_flags)
        if "values" in flags:
            flags["values"] = tuple(
                self._file_in(directory, str(value)) for value in flags["values"]
            )
        if "file_parameters" in flags:
            flags["file_parameters"] = tuple(
                (name, self._file_in(directory, file)) for name, file in flags["file_parameters"]
            )
        if load_root := flags.get("load_root"):
            flags["load_root"] = self._file_in(directory, load_root)
        return replace(self.request, path_or_url=str(path), render_flags=flags)

    def _file_in(self, directory: Path, file: str) -> str:
        """Return a file of the repository in the copy; any other file or address unchanged."""
        if file.lower().startswith(("https://", "http://")):
            return file
        return str(self._in_copy(Path(file).resolve(), directory))

    def _in_copy(self, path: Path, directory: Path) -> Path:
        root = self.repository.root.resolve()
        return directory / path.relative_to(root) if path.is_relative_to(root) else path


def _relative_to_cwd(root: Path) -> str:
    """Return a directory as the start of the paths that a user would write."""
    cwd = Path.cwd()
    return str(root.relative_to(cwd)) if root.is_relative_to(cwd) else str(root)
